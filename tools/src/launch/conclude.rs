//! When a job has ended: what is said, what is saved, and the exit code.

use super::{Job, complain, out};
use crate::cli::{AppOptions, ReportForm, RunOptions};
use crate::failure::{Failure, code};
use crate::report::{self, Verdict};
use crate::session::Finished;
use crate::trace::NodeRecording;
use crate::{check, hosts, matrix, mpir, outcome, simulate, trace};
use std::io::Write;
use vmpi_shared::control::{Cause, JobSpec};
use vmpi_shared::escape;

pub(super) fn conclude(
    options: &RunOptions,
    job: &Job,
    finished: &Finished,
    on_nodes: &[NodeRecording],
) -> Result<i32, Failure> {
    let spec = &job.spec;
    let mut ends = finished.ends.clone();
    ends.sort_by_key(|end| end.rank);
    let code = match (&finished.own, &finished.cause) {
        _ if finished.quiet => 128 + libc::SIGPIPE,
        (Some(own), _) => own.code,
        (None, Some(cause)) => outcome::exit_code(cause),
        (None, None) => code::OWN,
    };
    let code = check::code(code, finished.report.as_ref());
    if finished.quiet {
        return Ok(code);
    }
    let cause = match (&finished.own, &finished.cause) {
        (Some(own), _) => Some(own.sentence.clone()),
        (None, Some(cause)) => {
            let known = outcome::Known { spawned: &finished.spawned, ends: &ends, crashes: &finished.crashes };
            outcome::sentence(cause, spec, known, &node_of(cause, spec))
        }
        (None, None) => finished.lost.clone(),
    };
    if let Some(cause) = cause {
        complain(&cause);
        mpir::tell_failure(&cause);
    }
    if let (Some(_), Some(lost)) = (&finished.own, &finished.lost) {
        complain(lost);
    }
    if !options.quiet && finished.own.is_none() && code == 0 {
        let mut first = 0;
        for (found, app) in job.found.iter().zip(&spec.apps) {
            let of_app: Vec<_> =
                ends.iter().filter(|end| (first..first + app.ranks).contains(&end.rank)).cloned().collect();
            first += app.ranks;
            if let Some(note) = outcome::copies_note(&found.program, app.ranks, &of_app) {
                complain(&format!("note: {note}"));
            }
        }
    }
    let helpers = finished.report.as_ref().map_or(&[][..], |report| &report.helpers);
    if !helpers.is_empty() && !matches!(finished.cause, Some(Cause::Success)) {
        complain(&format!("what its ranks had started was ended, too: {}", outcome::processes(helpers)));
    } else if !helpers.is_empty() && options.verbose {
        complain(&format!("note: what its ranks have started goes on: {}", outcome::processes(helpers)));
    }
    let learnt = match finished.own {
        None => job.auto.as_ref().and_then(|auto| auto.learn(finished.cause.as_ref(), &ends, finished.report.as_ref())),
        Some(_) => None,
    };
    if let Some(why) = learnt.filter(|_| !options.quiet) {
        complain(&format!("note: {why}"));
    }
    if options.print_exit_codes {
        let _ = write!(std::io::stderr(), "{}", outcome::exit_table(&ends));
    }
    let simulated = finished.report.as_ref().and_then(|report| report.simulation.as_ref().zip(Some(report.elapsed_s)));
    if let Some((simulation, real_s)) = simulated.filter(|_| !options.quiet || options.report.is_some()) {
        let _ = write!(std::io::stderr(), "{}", escape::lines(&simulate::sentences(simulation, real_s)));
    }
    if let Some(report) = &finished.report {
        check::conclude(options, &report.findings)?;
    }
    if let (Some(report), Some(form)) = (&finished.report, options.report) {
        let verdict = Verdict::of(report, spec);
        let tables = match form {
            ReportForm::Summary => report::summary(report),
            ReportForm::Full => format!("{}\n{}", report::summary(report), report::full(report)),
        } + &report::sites(&finished.sites);
        let carried: Vec<&String> =
            report.notes.iter().filter(|note| note.contains(vmpi_shared::control::CARRIED)).collect();
        let carried: String = carried.into_iter().map(|note| format!("{}\n", escape::indented(note))).collect();
        let text = format!("{verdict}{}\n{carried}\n{tables}", job.plan.sentence());
        let _ = write!(std::io::stderr(), "{}", escape::lines(&text));
    }
    if let Some(matrix) = &finished.matrix {
        if let Some(path) = &options.matrix {
            matrix::save(matrix, path)?;
        }
        if let Some(dir) = &options.profile {
            matrix::save_profile(matrix, finished.report.as_ref(), dir)?;
        }
    }
    if options.trace.is_some() || options.report_html.is_some() {
        save_trace(options, job, finished, on_nodes)?;
    }
    if options.json {
        let (cause, report) = (finished.cause.as_ref(), finished.report.as_ref());
        let document = outcome::as_json(cause, code, &ends, report, spec, &finished.crashes);
        out(&format!("{document}\n"))?;
    }
    Ok(code)
}

/// `--trace` and `--report-html`.
fn save_trace(options: &RunOptions, job: &Job, finished: &Finished, on_nodes: &[NodeRecording]) -> Result<(), Failure> {
    let timeline = match &finished.trace {
        Some(recording) => Some(recording.timeline()?),
        None => trace::timeline_of_nodes(on_nodes),
    };
    let Some(timeline) = timeline else {
        complain("there is no trace: what was recorded went with vmpid");
        return Ok(());
    };
    let report = finished.report.as_ref();
    let about = trace::About {
        command: Some(command_line(&options.apps)),
        host: match (&job.spec.simulation, &job.spec.nodes) {
            (Some(simulation), _) => format!("{}, simulated", simulation.machine),
            (None, nodes) => nodes.as_ref().map_or_else(hosts::own_name, |nodes| nodes.names.join(", ")),
        },
        matrix: finished.matrix.as_ref(),
        report,
        // It is about this machine's cores.
        verdict: report.filter(|_| job.spec.simulation.is_none()).map(|report| Verdict::of(report, &job.spec)),
        sites: &finished.sites,
    };
    if let Some(path) = &options.trace {
        let saved = trace::save(&timeline, &about, path)?;
        if let Some(gaps) = saved.gaps {
            complain(&format!("note: the trace in {path}: {gaps}"));
        }
    }
    if let Some(path) = &options.report_html {
        trace::save_page(&timeline, &about, path)?;
    }
    Ok(())
}

/// The programs with their arguments, as a shell would take them.
pub(super) fn command_line(apps: &[AppOptions]) -> String {
    let quoted = |word: &String| {
        let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_=+:,./@%^".contains(c));
        if plain { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let line = |app: &AppOptions| -> String {
        std::iter::once(&app.program).chain(&app.args).map(quoted).collect::<Vec<_>>().join(" ")
    };
    apps.iter().map(line).collect::<Vec<_>>().join(" : ")
}

/// The node on which the rank that is the cause ran.
fn node_of(cause: &Cause, spec: &JobSpec) -> String {
    let rank = match cause {
        Cause::RankFailed { rank, .. }
        | Cause::Unfinished { rank, .. }
        | Cause::Aborted { rank, .. }
        | Cause::GroupAborted { rank, .. } => Some(*rank),
        _ => None,
    };
    rank.and_then(|rank| spec.node_of(rank)).map_or_else(hosts::own_name, str::to_string)
}
