//! What is said of a job before it runs, and of the CPU time that it was denied: notes, `--report-bindings`, `--dry-run`.

use super::{Found, Job, complain, out};
use crate::cli::RunOptions;
use crate::cpus;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::program;
use serde_json::json;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

pub(super) fn say_notes(options: &RunOptions, job: &Job) {
    if !options.quiet {
        for note in job.notes.iter().chain(&job.plan.notes) {
            complain(&format!("note: {note}"));
        }
        let shared = job.plan.v > 1 && options.v.is_none() && std::io::stderr().is_terminal();
        if options.verbose || shared {
            complain(&format!("note: {}", job.plan.sentence()));
        }
    }
    if options.verbose {
        quota_note(&job.plan).iter().for_each(|note| complain(&format!("note: {note}")));
        for found in &job.found {
            complain(&format!("note: {}", face_sentence(found)));
        }
    }
    if options.report_bindings {
        for (rank, core) in job.plan.placement.iter().enumerate() {
            let pinned = if job.plan.bind { "pinned to" } else { "scheduled with" };
            complain(&format!("rank {rank} {pinned} {}", job.plan.place_name(*core as usize)));
        }
    }
}

/// Has the control group kept the job from running for more than a hundredth of its time? `before`: what it had done by `began`.
pub(super) fn throttling(before: Option<Duration>, began: Instant) -> Option<String> {
    let (kept, took) = (cpus::throttled()?.saturating_sub(before?), began.elapsed());
    let quota = cpus::cgroup_quota()?;
    (kept > took / 100).then(|| {
        format!(
            "the control group, which grants {quota:.2} CPUs of time, has kept the job from running for {:.1} s of {:.1} s; use fewer cores or ranks, or \
             raise its quota",
            kept.as_secs_f64(),
            took.as_secs_f64()
        )
    })
}

fn quota_note(plan: &Plan) -> Option<String> {
    let quota = cpus::cgroup_quota()?;
    (quota < plan.cpus.len() as f64).then(|| {
        format!("the control group grants {quota:.2} CPUs of time, less than the {} cores used", plan.cpus.len())
    })
}

fn face_sentence(found: &Found) -> String {
    let face = found.choice.face.map_or("no MPI visible".to_string(), |face| face.to_string());
    format!("{}: {face} ({})", found.program.path.display(), found.choice.why)
}

pub(super) fn dry_run(options: &RunOptions, job: &Job) -> Result<i32, Failure> {
    let plan = &job.plan;
    let notes: Vec<&String> = job.notes.iter().chain(&plan.notes).collect();
    let quota = quota_note(plan);
    if options.json {
        let programs: Vec<_> = job
            .found
            .iter()
            .zip(&job.spec.apps)
            .map(|(found, app)| {
                json!({
                    "program": app.program,
                    "argv": app.argv,
                    "cwd": app.cwd,
                    "ranks": app.ranks,
                    "face": found.choice.face.map(|face| face.name()),
                    "why": found.choice.why,
                    "preload": found.choice.preload,
                })
            })
            .collect();
        let document = json!({
            "schema_version": 1,
            "ranks": plan.ranks,
            "v": plan.v,
            "cpus": plan.cpus,
            "beside": plan.beside,
            "placement": plan.placement,
            "pinned": plan.bind,
            "programs": programs,
            "notes": notes.iter().map(|note| note.as_str()).chain(quota.as_deref()).collect::<Vec<_>>(),
        });
        return out(&format!("{document:#}\n"));
    }
    let mut text = format!("{}\n", plan.sentence());
    for core in 0..plan.cpus.len() {
        let ranks = cpus::format_list(&plan.ranks_of(core));
        text.push_str(&format!(
            "  {}: rank{} {ranks}\n",
            plan.place_name(core),
            if ranks.contains([',', '-']) { "s" } else { "" }
        ));
    }
    for found in &job.found {
        text.push_str(&format!("{}\n", face_sentence(found)));
        if let program::Kind::Elf(closure) = &found.program.kind {
            for name in &closure.missing {
                text.push_str(&format!("  ld.so would not find {name}\n"));
            }
        }
    }
    for note in notes.into_iter().chain(&quota) {
        text.push_str(&format!("note: {note}\n"));
    }
    out(&text)
}
