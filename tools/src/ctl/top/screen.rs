//! `vmpictl top` on a terminal: what is drawn, and what keys do.

use super::view::{Order, RANK_HEAD, RankLine, View, rank_cells};
use crate::table::percent;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table as Grid};

/// Rows that Page Up and Page Down move by.
const PAGE: usize = 20;

const HELP: &[&str] = &[
    "Cores: what each did since the last look; ranks: what each did.",
    "",
    "BUSY%     it ran on its core          READY%  another rank had the core",
    "WAIT%     it waited in MPI            TX/S    bytes sent per second",
    "WAITING-ON  what a suspended rank waits for: call, peer, tag",
    "",
    "< >       sort by the column before, after    0  by job and rank again",
    "r         the other way round",
    "/ WORDS   only rows that have all the words; Enter keeps them, Esc drops them",
    "Up Down PgUp PgDn Home End  (or k j)  scroll",
    "?         this help                            q  quit",
];

/// What the user has chosen.
#[derive(Debug, Default)]
pub(super) struct Screen {
    pub(super) order: Order,
    scroll: usize,
    /// Words are being typed.
    types: bool,
    helps: bool,
    pub(super) colours: bool,
}

impl Screen {
    pub(super) fn new(order: Order, colours: bool) -> Screen {
        Screen { order, colours, ..Screen::default() }
    }

    /// A key was pressed. True: quit.
    pub(super) fn press(&mut self, key: KeyEvent, view: &View) -> bool {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return true;
        }
        if self.helps {
            // Whatever was pressed closes it.
            self.helps = false;
            return false;
        }
        if self.types {
            self.type_in(key.code);
            return false;
        }
        let last = self.order.of(view).len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Esc if self.order.filter.is_empty() => return true,
            KeyCode::Esc => self.order.filter.clear(),
            KeyCode::Char('?' | 'h') => self.helps = true,
            KeyCode::Char('/') => self.types = true,
            KeyCode::Char('r') => self.order.reversed = !self.order.reversed,
            KeyCode::Char('0') => (self.order.column, self.order.reversed) = (None, false),
            KeyCode::Char('>' | '.') => self.sort_by(1),
            KeyCode::Char('<' | ',') => self.sort_by(RANK_HEAD.len() - 1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll += PAGE,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = last,
            _ => {}
        }
        self.scroll = self.scroll.min(last);
        false
    }

    fn sort_by(&mut self, step: usize) {
        let from = self.order.column.unwrap_or(if step == 1 { RANK_HEAD.len() - 1 } else { 0 });
        self.order.column = Some((from + step) % RANK_HEAD.len());
    }

    fn type_in(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.types = false,
            KeyCode::Esc => {
                self.types = false;
                self.order.filter.clear();
            }
            KeyCode::Backspace => drop(self.order.filter.pop()),
            KeyCode::Char(letter) => self.order.filter.push(letter),
            _ => {}
        }
        self.scroll = 0;
    }

    fn foot(&self, shown: usize, all: usize) -> String {
        match (self.types, self.order.filter.as_str()) {
            (true, words) => format!("/{words}_   Enter keeps   Esc drops"),
            (false, "") => "? help   q quit   < > sort   r reverse   / filter   \u{2191}\u{2193} scroll".into(),
            (false, words) => format!("{shown} of {all} ranks: {words}   Esc shows all   ? help   q quit"),
        }
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, view: &View) {
        let strong = Style::new().add_modifier(Modifier::BOLD);
        let cores = view.cores.len().min(frame.area().height as usize / 3) as u16;
        let [head, core_area, rank_area, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(cores + 2),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(view.head()).style(strong), head);
        self.draw_cores(frame, view, core_area);
        let lines = self.order.of(view);
        self.draw_ranks(frame, &lines, rank_area);
        frame.render_widget(Paragraph::new(self.foot(lines.len(), view.ranks.len())), foot);
        if self.helps {
            let wide = HELP.iter().map(|line| line.len()).max().unwrap_or(0) as u16 + 4;
            let area = middle(frame.area(), wide, HELP.len() as u16 + 2);
            frame.render_widget(Clear, area);
            let block = Block::bordered().title("vmpictl top: any key goes back");
            frame.render_widget(Paragraph::new(HELP.join("\n")).block(block), area);
        }
    }

    fn draw_cores(&self, frame: &mut Frame<'_>, view: &View, area: Rect) {
        let lines: Vec<Line<'_>> = view
            .cores
            .iter()
            .map(|line| {
                let text =
                    format!("job {} cpu {:<3} {:>3} ranks, {:>2} ready ", line.job, line.cpu, line.ranks, line.ready);
                let room = (area.width as usize).saturating_sub(text.len() + 20);
                let whole = line.parts.iter().sum();
                let mut all = vec![Span::raw(text)];
                all.extend(bar(&line.parts, room, self.colours).spans);
                all.push(Span::raw(format!(" {:>3}% {:>8.0}/s", percent(line.parts[0], whole), line.handoffs_per_s)));
                Line::from(all)
            })
            .collect();
        let title = "cores: \u{2588} running \u{2593} hand-off \u{00b7} idle \u{2592} other jobs \u{2591} start and end; hand-offs per second";
        frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
    }

    fn draw_ranks(&self, frame: &mut Frame<'_>, lines: &[&RankLine], area: Rect) {
        let strong = Style::new().add_modifier(Modifier::BOLD);
        let head: Vec<String> =
            RANK_HEAD.iter().enumerate().map(|(column, name)| format!("{name}{}", self.order.arrow(column))).collect();
        let rows: Vec<Vec<String>> = lines.iter().map(|line| rank_cells(line)).collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            Constraint::Length(cells.chain([head[column].chars().count()]).max().unwrap_or(0) as u16)
        };
        let widths: Vec<Constraint> = (0..head.len()).map(width).collect();
        let shown = rows.iter().skip(self.scroll.min(rows.len().saturating_sub(1))).map(|row| Row::new(row.clone()));
        let grid = Grid::new(shown, widths)
            .header(Row::new(head.clone()).style(strong))
            .block(Block::bordered().title("ranks"));
        frame.render_widget(grid, area);
    }
}

/// A box of this size in the middle, or as much of it as there is room for.
fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

/// A bar of `width` characters: running, hand-off, idle, other jobs, start and end.
fn bar(parts: &[f64; 6], width: usize, colours: bool) -> Line<'static> {
    let whole: f64 = parts.iter().sum();
    let marks = [
        ("\u{2588}", Color::Blue),
        ("\u{2593}", Color::Red),
        ("\u{00b7}", Color::DarkGray),
        ("\u{2592}", Color::Magenta),
        ("\u{2591}", Color::Green),
        ("\u{2591}", Color::Green),
    ];
    let mut spans = Vec::new();
    let (mut drawn, mut sum) = (0, 0.0);
    for (part, (mark, colour)) in parts.iter().zip(marks) {
        sum += part;
        let end = if whole > 0.0 { (sum / whole * width as f64).round() as usize } else { 0 };
        let style = if colours { Style::new().fg(colour) } else { Style::new() };
        spans.push(Span::styled(mark.repeat(end.saturating_sub(drawn)), style));
        drawn = end.max(drawn);
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::jobs;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(screen: &Screen, view: &View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(110, 20)).unwrap();
        terminal.draw(|frame| screen.draw(frame, view)).unwrap();
        terminal.backend().to_string()
    }

    fn press(screen: &mut Screen, view: &View, keys: &str) -> bool {
        keys.chars().fold(false, |_, key| {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '\u{8}' => KeyCode::Backspace,
                key => KeyCode::Char(key),
            };
            screen.press(KeyEvent::from(code), view)
        })
    }

    #[test]
    fn the_screen_holds_bars_and_ranks() {
        let view = View::between(&jobs(0.0, 0.0, 0), &jobs(0.5, 0.5, 10), 1.0);
        let mut screen = Screen::new(Order::default(), true);
        let shown = drawn(&screen, &view);
        let bar = shown.lines().find(|line| line.contains("job 3 cpu 1")).expect("a line for the core");
        let count = |mark: char| bar.chars().filter(|c| *c == mark).count() as i32;
        assert!(count('\u{2588}') > 10 && (count('\u{2588}') - count('\u{00b7}')).abs() <= 1, "{bar}");
        assert!(shown.contains("receive peer=0 tag=1") && shown.contains("50"), "{shown}");
        assert!(!press(&mut screen, &view, "j"));
        assert!(!drawn(&screen, &view).contains("SUSPENDED"), "scrolled by one");
        assert!(!press(&mut screen, &view, "jjjj"));
        assert!(drawn(&screen, &view).contains("READY "), "the last one stays");
    }

    #[test]
    fn keys_sort_filter_and_help() {
        let view = View::between(&jobs(0.0, 0.0, 0), &jobs(0.5, 0.5, 10), 1.0);
        let mut screen = Screen::new(Order::default(), false);
        press(&mut screen, &view, ">>");
        assert!(drawn(&screen, &view).contains("RANK\u{25b4}"));
        press(&mut screen, &view, "r");
        assert!(drawn(&screen, &view).contains("RANK\u{25be}"));
        press(&mut screen, &view, "0<");
        assert!(drawn(&screen, &view).contains("WAITING-ON\u{25b4}"));
        press(&mut screen, &view, "/suspq\u{8}");
        assert!(drawn(&screen, &view).contains("/susp_"));
        press(&mut screen, &view, "\n");
        let shown = drawn(&screen, &view);
        assert!(
            shown.contains("1 of 2 ranks: susp") && shown.contains("peer=0") && !shown.contains(" READY "),
            "{shown}"
        );
        assert!(!press(&mut screen, &view, "\u{1b}"), "shows all again, and does not quit");
        assert!(drawn(&screen, &view).contains(" READY "));
        press(&mut screen, &view, "?");
        assert!(drawn(&screen, &view).contains("only rows that have all the words"));
        assert!(!press(&mut screen, &view, "q"), "closes the help");
        assert!(!drawn(&screen, &view).contains("only rows"));
        assert!(press(&mut screen, &view, "q"));
    }
}
