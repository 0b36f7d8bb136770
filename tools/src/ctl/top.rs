//! `vmpictl top`: cores and ranks as they run. What is shown is what happened between two looks.

mod screen;
mod view;

use super::peers::all_jobs;
use super::show::with_daemon;
use crate::failure::Failure;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use screen::Screen;
use serde_json::json;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use view::{Jobs, Order, View, plain};

/// Time between the two looks of `--once`.
const SHORT: Duration = Duration::from_millis(300);

fn look() -> (Jobs, Instant) {
    (all_jobs(true), Instant::now())
}

/// One look as text or JSON, or a screen that is drawn anew until the user ends it. `sort`: a column's name; `filter`: words.
pub fn top(
    once: bool,
    interval_s: f64,
    (sort, filter): (Option<&str>, Option<&str>),
    as_json: bool,
) -> Result<String, Failure> {
    if !(0.05..=3600.0).contains(&interval_s) {
        return Err(Failure::usage(format!("--interval {interval_s}: between 0.05 and 3600 seconds")));
    }
    let order = Order::new(sort, filter)?;
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
                        "starting_s": line.parts[4],
                        "ending_s": line.parts[5],
                        "handoffs_per_s": line.handoffs_per_s,
                    })
                })
                .collect();
            let document =
                json!({ "schema_version": 1, "interval_s": view.interval_s, "interval_cores": cores, "jobs": jobs });
            return Ok(format!("{document:#}\n"));
        }
        return Ok(plain(&view, &order));
    }
    let mut terminal = ratatui::try_init().map_err(|e| Failure::new(1, format!("cannot use the terminal: {e}")))?;
    let result = watch(&mut terminal, Duration::from_secs_f64(interval_s), order);
    ratatui::restore();
    result.map(|()| String::new()).map_err(|e| Failure::new(1, format!("the terminal failed: {e}")))
}

fn watch(terminal: &mut DefaultTerminal, interval: Duration, order: Order) -> std::io::Result<()> {
    let mut screen = Screen::new(order, std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()));
    let (mut before, mut start) = look();
    let mut view = View::between(&before, &before, 0.0);
    loop {
        terminal.draw(|frame| screen.draw(frame, &view))?;
        let due = start + interval;
        while event::poll(due.saturating_duration_since(Instant::now()))? {
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
                && screen.press(key, &view)
            {
                return Ok(());
            }
            terminal.draw(|frame| screen.draw(frame, &view))?;
        }
        let (now, end) = look();
        view = View::between(&before, &now, (end - start).as_secs_f64());
        (before, start) = (now, end);
    }
}
