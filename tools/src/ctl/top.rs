//! `vmpictl top`: cores and ranks as they run. What is shown is what happened between two looks.

use super::peers::all_jobs;
use super::show::{dash, with_daemon};
use crate::failure::Failure;
use crate::table::{Table, bytes, percent};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Table as Grid};
use ratatui::{DefaultTerminal, Frame};
use serde_json::json;
use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use vmpi_shared::control::{CoreReport, JobReport, RankReport};

/// Time between the two looks of `--once`.
const SHORT: Duration = Duration::from_millis(300);

type Jobs = Vec<(i32, JobReport)>;

/// A core's time in the interval, as shares.
#[derive(Clone, Debug, PartialEq)]
struct CoreLine {
    job: u32,
    cpu: u32,
    ranks: u32,
    running: Option<u32>,
    ready: u32,
    handoffs_per_s: f64,
    /// Running, hand-off, idle, other jobs: seconds of the interval.
    parts: [f64; 4],
}

/// A rank's time in the interval.
#[derive(Clone, Debug)]
struct RankLine {
    job: u32,
    rank: RankReport,
    /// Running, ready, waiting, away.
    parts: [f64; 4],
    sent_per_s: f64,
}

/// What happened between two looks.
#[derive(Clone, Debug, Default)]
struct View {
    jobs: usize,
    cores: Vec<CoreLine>,
    ranks: Vec<RankLine>,
    interval_s: f64,
}

fn parts_of_core(core: &CoreReport) -> [f64; 4] {
    [core.running_s, core.handoff_s, core.idle_s, core.withheld_s]
}

fn parts_of_rank(rank: &RankReport) -> [f64; 4] {
    [rank.rtime_s, rank.ready_s, rank.wait_s, rank.away_s]
}

fn difference(now: [f64; 4], before: Option<[f64; 4]>) -> [f64; 4] {
    let before = before.unwrap_or([0.0; 4]);
    std::array::from_fn(|at| (now[at] - before[at]).max(0.0))
}

impl View {
    fn between(before: &Jobs, now: &Jobs, interval_s: f64) -> View {
        let key = |daemon: i32, job: u32, number: u32| (daemon, job, number);
        let mut cores = HashMap::new();
        let mut ranks = HashMap::new();
        for (daemon, job) in before {
            cores.extend(job.cores.iter().map(|core| (key(*daemon, job.job, core.cpu), core)));
            ranks.extend(job.rank_list.iter().map(|rank| (key(*daemon, job.job, rank.rank), rank)));
        }
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / interval_s.max(1e-9);
        let mut view = View { jobs: now.len(), interval_s, ..View::default() };
        for (daemon, job) in now {
            for core in &job.cores {
                let old = cores.get(&key(*daemon, job.job, core.cpu));
                view.cores.push(CoreLine {
                    job: job.job,
                    cpu: core.cpu,
                    ranks: core.ranks,
                    running: core.running,
                    ready: core.ready,
                    handoffs_per_s: rate(core.handoffs, old.map_or(0, |old| old.handoffs)),
                    parts: difference(parts_of_core(core), old.map(|old| parts_of_core(old))),
                });
            }
            for rank in &job.rank_list {
                let old = ranks.get(&key(*daemon, job.job, rank.rank));
                view.ranks.push(RankLine {
                    job: job.job,
                    rank: rank.clone(),
                    parts: difference(parts_of_rank(rank), old.map(|old| parts_of_rank(old))),
                    sent_per_s: rate(rank.sent_bytes, old.map_or(0, |old| old.sent_bytes)),
                });
            }
        }
        view
    }

    fn head(&self) -> String {
        let jobs = if self.jobs == 1 { "1 job".into() } else { format!("{} jobs", self.jobs) };
        format!("vmpi: {jobs}, {} ranks on {} cores, over {:.1} s", self.ranks.len(), self.cores.len(), self.interval_s)
    }
}

const CORE_HEAD: [&str; 9] = ["JOB", "CPU", "RANKS", "RUNS", "READY", "BUSY%", "HAND-OFF%", "IDLE%", "HAND-OFFS/S"];
const RANK_HEAD: [&str; 11] =
    ["JOB", "RANK", "PID", "CPU", "STATE", "BUSY%", "READY%", "WAIT%", "TX/S", "RSS", "WAITING-ON"];

fn core_cells(line: &CoreLine) -> Vec<String> {
    let whole = line.parts.iter().sum();
    vec![
        line.job.to_string(),
        line.cpu.to_string(),
        line.ranks.to_string(),
        line.running.map_or_else(|| "-".into(), |rank| rank.to_string()),
        line.ready.to_string(),
        percent(line.parts[0], whole),
        percent(line.parts[1], whole),
        percent(line.parts[2], whole),
        format!("{:.0}", line.handoffs_per_s),
    ]
}

fn rank_cells(line: &RankLine) -> Vec<String> {
    let whole = line.parts.iter().sum();
    let rank = &line.rank;
    vec![
        line.job.to_string(),
        rank.rank.to_string(),
        rank.pid.to_string(),
        rank.cpu.to_string(),
        rank.state.clone(),
        percent(line.parts[0], whole),
        percent(line.parts[1], whole),
        percent(line.parts[2], whole),
        bytes(line.sent_per_s as u64),
        bytes(rank.rss_bytes),
        dash(&rank.waiting_on),
    ]
}

/// As plain tables.
fn plain(view: &View) -> String {
    let mut cores = Table::new(&CORE_HEAD);
    view.cores.iter().for_each(|line| cores.row(core_cells(line)));
    let mut ranks = Table::new(&RANK_HEAD);
    view.ranks.iter().for_each(|line| ranks.row(rank_cells(line)));
    format!("{}\n\n{cores}\n{ranks}", view.head())
}

/// A bar of `width` characters: running, hand-off, idle, other jobs.
fn bar(parts: &[f64; 4], width: usize, colours: bool) -> Line<'static> {
    let whole: f64 = parts.iter().sum();
    let marks = [
        ("\u{2588}", Color::Green),
        ("\u{2593}", Color::Red),
        ("\u{00b7}", Color::DarkGray),
        ("\u{2592}", Color::Blue),
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

fn widths(head: &[&str], rows: &[Vec<String>]) -> Vec<Constraint> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0) as u16
    };
    (0..head.len()).map(|column| Constraint::Length(width(column))).collect()
}

fn draw(frame: &mut Frame<'_>, view: &View, scroll: usize, colours: bool) {
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
    let lines: Vec<Line<'_>> = view
        .cores
        .iter()
        .map(|line| {
            let text =
                format!("job {} cpu {:<3} {:>3} ranks, {:>2} ready ", line.job, line.cpu, line.ranks, line.ready);
            let room = (core_area.width as usize).saturating_sub(text.len() + 20);
            let whole = line.parts.iter().sum();
            let mut all = vec![Span::raw(text)];
            all.extend(bar(&line.parts, room, colours).spans);
            all.push(Span::raw(format!(" {:>3}% {:>8.0}/s", percent(line.parts[0], whole), line.handoffs_per_s)));
            Line::from(all)
        })
        .collect();
    let title = "cores: \u{2588} running \u{2593} hand-off \u{00b7} idle \u{2592} other jobs; hand-offs per second";
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), core_area);
    let rows: Vec<Vec<String>> = view.ranks.iter().map(rank_cells).collect();
    let shown = rows.iter().skip(scroll).map(|row| Row::new(row.clone()));
    let grid = Grid::new(shown, widths(&RANK_HEAD, &rows))
        .header(Row::new(RANK_HEAD).style(strong))
        .block(Block::bordered().title("ranks"));
    frame.render_widget(grid, rank_area);
    frame.render_widget(Paragraph::new("q quit   \u{2191}\u{2193} PgUp PgDn scroll"), foot);
}

fn look() -> (Jobs, Instant) {
    (all_jobs(true), Instant::now())
}

/// One look as text or JSON, or a screen that is drawn anew until the user ends it.
pub fn top(once: bool, interval_s: f64, as_json: bool) -> Result<String, Failure> {
    if !(0.05..=3600.0).contains(&interval_s) {
        return Err(Failure::usage(format!("--interval {interval_s}: between 0.05 and 3600 seconds")));
    }
    if once || as_json || !std::io::stdout().is_terminal() {
        let (before, start) = look();
        std::thread::sleep(SHORT);
        let (now, end) = look();
        let view = View::between(&before, &now, (end - start).as_secs_f64());
        if as_json {
            let jobs: Vec<_> = now.iter().map(|(daemon, job)| with_daemon(*daemon, job)).collect();
            let cores: Vec<_> = view
                .cores
                .iter()
                .map(|line| {
                    json!({
                        "job": line.job,
                        "cpu": line.cpu,
                        "running_s": line.parts[0],
                        "handoff_s": line.parts[1],
                        "idle_s": line.parts[2],
                        "withheld_s": line.parts[3],
                        "handoffs_per_s": line.handoffs_per_s,
                    })
                })
                .collect();
            let document =
                json!({ "schema_version": 1, "interval_s": view.interval_s, "interval_cores": cores, "jobs": jobs });
            return Ok(format!("{document:#}\n"));
        }
        return Ok(plain(&view));
    }
    let mut terminal = ratatui::try_init().map_err(|e| Failure::new(1, format!("cannot use the terminal: {e}")))?;
    let result = watch(&mut terminal, Duration::from_secs_f64(interval_s));
    ratatui::restore();
    result.map(|()| String::new()).map_err(|e| Failure::new(1, format!("the terminal failed: {e}")))
}

fn watch(terminal: &mut DefaultTerminal, interval: Duration) -> std::io::Result<()> {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let (mut before, mut start) = look();
    let (mut view, mut scroll) = (View::between(&before, &before, 0.0), 0usize);
    loop {
        terminal.draw(|frame| draw(frame, &view, scroll, colours))?;
        let due = start + interval;
        while event::poll(due.saturating_duration_since(Instant::now()))? {
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                let last = view.ranks.len().saturating_sub(1);
                match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    KeyCode::Down | KeyCode::Char('j') => scroll = (scroll + 1).min(last),
                    KeyCode::Up | KeyCode::Char('k') => scroll = scroll.saturating_sub(1),
                    KeyCode::PageDown => scroll = (scroll + 20).min(last),
                    KeyCode::PageUp => scroll = scroll.saturating_sub(20),
                    KeyCode::Home => scroll = 0,
                    KeyCode::End => scroll = last,
                    _ => {}
                }
            }
            terminal.draw(|frame| draw(frame, &view, scroll, colours))?;
        }
        let (now, end) = look();
        view = View::between(&before, &now, (end - start).as_secs_f64());
        (before, start) = (now, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn jobs(running_s: f64, idle_s: f64, handoffs: u64) -> Jobs {
        let core = CoreReport { cpu: 1, ranks: 2, running_s, idle_s, handoffs, ..CoreReport::default() };
        let rank = |rank: u32, rtime_s: f64, wait_s: f64| RankReport {
            rank,
            rtime_s,
            wait_s,
            state: "SUSPENDED".into(),
            waiting_on: "receive peer=0 tag=1".into(),
            ..RankReport::default()
        };
        let rank_list = vec![rank(0, running_s, idle_s), rank(1, 0.0, running_s + idle_s)];
        vec![(7, JobReport { job: 3, cores: vec![core], rank_list, ..JobReport::default() })]
    }

    #[test]
    fn what_is_shown_is_the_interval() {
        let view = View::between(&jobs(10.0, 0.0, 100), &jobs(10.75, 0.25, 300), 1.0);
        assert_eq!(view.cores[0].parts, [0.75, 0.0, 0.25, 0.0]);
        assert!((view.cores[0].handoffs_per_s - 200.0).abs() < 1e-9);
        let text = plain(&view);
        assert!(text.contains("vmpi: 1 job, 2 ranks on 1 cores, over 1.0 s"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("3    1    2") && line.contains("75")), "{text}");
    }

    #[test]
    fn the_screen_holds_bars_and_ranks() {
        let view = View::between(&jobs(0.0, 0.0, 0), &jobs(0.5, 0.5, 10), 1.0);
        let mut terminal = Terminal::new(TestBackend::new(110, 20)).unwrap();
        terminal.draw(|frame| draw(frame, &view, 0, true)).unwrap();
        let screen = terminal.backend().to_string();
        let bar = screen.lines().find(|line| line.contains("job 3 cpu 1")).expect("a line for the core");
        let count = |mark: char| bar.chars().filter(|c| *c == mark).count() as i32;
        assert!(count('\u{2588}') > 10 && (count('\u{2588}') - count('\u{00b7}')).abs() <= 1, "{bar}");
        assert!(screen.contains("receive peer=0 tag=1") && screen.contains("50"), "{screen}");
        terminal.draw(|frame| draw(frame, &view, 1, false)).unwrap();
        assert_eq!(terminal.backend().to_string().matches("SUSPENDED").count(), 1, "scrolled by one");
    }
}
