//! A job as `vmpictl` and `vmpirun --report` print it.

use std::fs::File;
use vmpi_shared::control::{CoreReport, JobReport, RankReport, RegionReport};
use vmpi_shared::endpoint::inspect;
use vmpi_shared::mem::sync::Ordering::Relaxed;
use vmpi_shared::monitor::{FOR_JOB, Matrix};
use vmpi_shared::trace::regions;
use vmpi_shared::{proc, sched};

use crate::job::Job;
use crate::simulation;

impl Job {
    /// The job as `vmpictl` prints it.
    pub fn report(&self) -> JobReport {
        self.report_at(self.node.now())
    }

    /// The job as it stands at `now`.
    pub fn report_at(&self, now: u64) -> JobReport {
        let mut faces: Vec<String> =
            self.ranks.iter().filter_map(|rank| rank.attachment.as_ref()).map(|a| a.face.clone()).collect();
        faces.sort();
        faces.dedup();
        let mut report = JobReport {
            findings: self.findings.clone(),
            helpers: Vec::new(),
            job: self.id,
            program: self.spec.apps.iter().map(|app| app.program.as_str()).collect::<Vec<_>>().join(" : "),
            ranks: self.spec.ranks,
            v: self.spec.v,
            launcher_pid: self.launcher_pid,
            elapsed_s: self.started.elapsed().as_secs_f64(),
            policy: self.spec.policy.name().into(),
            balance: self.spec.balance.name().into(),
            faces,
            cores: self.cores_in_use().map(|core| self.core_report(core, now)).collect(),
            // Those of other nodes are reported there.
            rank_list: (0..self.ranks.len() as u32)
                .filter(|rank| self.spec.is_local(*rank))
                .map(|rank| self.rank_report(rank, now))
                .collect(),
            notes: self.notes(),
            counters: self.spec.counters.clone(),
            waits: self.looks.shares(),
            regions: self.regions(),
            simulation: self
                .simulation
                .as_ref()
                .zip(self.spec.simulation.as_ref())
                .map(|(s, of)| simulation::report(s, of)),
        };
        // As many as are counted.
        let counted = report.counters.len();
        report.cores.iter_mut().for_each(|core| core.counters.truncate(counted));
        report.rank_list.iter_mut().for_each(|rank| rank.counters.truncate(counted));
        report
    }

    /// What ranks of this node tell of the program's regions.
    fn regions(&self) -> Vec<RegionReport> {
        let Ok(file) = self.segment.fd().try_clone_to_owned().map(File::from) else { return Vec::new() };
        let rings = self.segment.rings();
        let mut all = Vec::new();
        for rank in (0..self.ranks.len() as u32).filter(|rank| !self.node.is_remote(*rank)) {
            let table = rings.regions_at(&file, rank);
            for region in table.and_then(|table| regions::read(&file, table)).unwrap_or_default() {
                // In virtual time ticks are picoseconds.
                let seconds = |ticks: u64| match &self.simulation {
                    Some(_) => ticks as f64 * 1e-12,
                    None => self.node.seconds(ticks),
                };
                let [time_s, wait_s, ready_s] = [region.ticks, region.waited, region.ready].map(seconds);
                let report = RegionReport {
                    name: region.name,
                    ranks: u32::from(region.entered > 0),
                    entered: region.entered,
                    min_s: time_s,
                    sum_s: time_s,
                    max_s: time_s,
                    max_rank: rank,
                    wait_s: wait_s.min(time_s),
                    ready_s: ready_s.min(time_s),
                    open: region.open.into(),
                    strays: region.strays,
                };
                all.push(report);
            }
        }
        RegionReport::together(all)
    }

    fn core_report(&self, core: u32, now: u64) -> CoreReport {
        let ends = self.ends.as_ref().and_then(|ends| ends.idle.get(core as usize)).copied();
        sched::core_report_of(&self.node, core, now, ends)
    }

    /// What has been counted of its transfers.
    pub fn matrix(&self) -> Matrix {
        let ranks = self.ranks.len() as u32;
        let on = (0..ranks).any(|rank| self.node.rank(rank).monitor.load(Relaxed) & FOR_JOB != 0);
        let placement = self.placement.iter().copied().take(ranks as usize).collect();
        let counted = Matrix::gather(self.id, on, placement, (0..ranks).map(|rank| self.segment.monitor(rank)));
        let nodes = self.spec.nodes.as_ref().map_or(Vec::new(), |nodes| nodes.of_rank.clone());
        Matrix { nodes, ..counted }
    }

    /// Count transfers from now on, or no more.
    pub fn set_monitored(&mut self, on: bool) {
        self.monitored |= on;
        self.node.set_monitored(on);
    }

    /// The job's cores; spare ones only if ranks were spawned there.
    fn cores_in_use(&self) -> impl Iterator<Item = u32> + '_ {
        let own = self.spec.cpus.len() as u32;
        let all = own + self.spec.spare_cpus.len() as u32;
        (0..all).filter(move |core| *core < own || sched::core_report(&self.node, *core).ranks > 0)
    }

    /// Which way messages of this job go, and why.
    fn notes(&self) -> Vec<String> {
        let config = self.segment.config();
        let (limit, near) = (config.eager_limit_bytes, config.near_eager_limit_bytes);
        let mut notes = vec![format!(
            "messages up to {limit} bytes ({near} between ranks of one core) are copied through shared memory, larger ones once, by \
             process_vm_readv or out of memory that is laid open"
        )];
        if let Some(by) = self.carried_by() {
            notes.push(format!("{} {by}", vmpi_shared::control::CARRIED));
        }
        let us = |ticks: u64| (self.node.seconds(ticks) * 1e6).round();
        let header = self.node.header();
        notes.push(format!(
            "an idle core is watched for {} us, or {} us where it lately had work again by then; turns below {} us count as short: by \
             what hand-overs and wake-ups cost when the daemon started",
            us(header.spin_ticks),
            us(header.long_ticks),
            us(header.brisk_ticks)
        ));
        let refused = (0..self.ranks.len() as u32)
            .map(|rank| sched::copies_refused(&self.node, rank))
            .fold(0, u64::saturating_add);
        if refused > 0 {
            notes.push(format!(
                "{refused} single copies were refused by the kernel (ptrace scope, ranks in namespaces of their own, or seccomp); \
                 those messages were copied twice instead"
            ));
        }
        notes
    }

    fn rank_report(&self, rank: u32, now: u64) -> RankReport {
        let entry = &self.ranks[rank as usize];
        let mut report = sched::rank_report_at(&self.node, rank, now);
        let world = &self.worlds[entry.world];
        (report.world, report.world_rank) = (world.number, entry.world_rank);
        report.unexpected = inspect::unexpected(&self.segment, rank).into();
        report.pid = entry.attachment.as_ref().map_or(entry.pid, |a| a.pid);
        report.face = entry.attachment.as_ref().map_or_else(String::new, |a| a.face.clone());
        if entry.over {
            report.state = "ENDED".into();
        } else if report.pid != 0 {
            let process = proc::seen_as(report.pid).and_then(|seen| procfs::process::Process::new(seen).ok());
            if let Some(Ok(stat)) = process.map(|process| process.stat()) {
                report.rss_bytes = stat.rss * procfs::page_size();
                if matches!(stat.state, 'T' | 't') {
                    report.warn = "stopped".into();
                }
            }
        }
        report
    }
}
