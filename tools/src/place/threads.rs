//! CPUs for the threads of a rank: how many each rank has, and what OpenMP is told.

use crate::cli::{AppOptions, BindTo, CpusPerRank, EnvSetting, Resource, RunOptions, VChoice};
use crate::environ::Env;
use crate::plan::Plan;

const NUM_THREADS: &str = "OMP_NUM_THREADS";
const WAIT_POLICY: &str = "OMP_WAIT_POLICY";
/// By which users say how long a thread without work spins.
const SPINNING: [&str; 3] = [WAIT_POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME"];

/// CPUs for each of a node's `ranks` ranks: as asked for; else, where there are CPUs that no rank would have, as many as OMP_NUM_THREADS says, or the batch
/// system was asked for (`tasks`), and there are for each.
pub fn cpus_per_rank(options: &RunOptions, own: &Env, ranks: Option<u32>, cpus: u32, tasks: Option<u32>) -> u32 {
    let threads = said(options, own, NUM_THREADS).and_then(|said| first_number(&said));
    // Hydra's `-bind-to core:4`.
    if let (None, Some(BindTo::To(Resource::Core | Resource::Hwthread, n @ 2..))) =
        (options.cpus_per_rank, &options.bind_to)
    {
        return *n;
    }
    match options.cpus_per_rank {
        Some(CpusPerRank::Exactly(k)) => k.max(1),
        Some(CpusPerRank::Threads) => threads.unwrap_or(1),
        // Who unbinds ranks gives them all CPUs.
        None if options.bind == Some(false) => 1,
        None => {
            let v = match options.v {
                Some(VChoice::Exactly(v)) => v.max(1),
                _ => 1,
            };
            let places = ranks.map_or(cpus, |ranks| ranks.div_ceil(v)).max(1);
            threads.or(tasks).unwrap_or(1).min(cpus / places).max(1)
        }
    }
}

/// `4`, or `4,2` for nested regions.
fn first_number(said: &str) -> Option<u32> {
    said.split(',').next()?.trim().parse().ok().filter(|threads| *threads > 0)
}

/// The value that all ranks get of a variable, as far as the command line and the environment say.
fn said(options: &RunOptions, own: &Env, wanted: &str) -> Option<String> {
    let set = |setting: &EnvSetting| match setting {
        EnvSetting::Set(name, value) if name == wanted => Some(value.clone()),
        _ => None,
    };
    let of_app = options.apps.first().and_then(|app: &AppOptions| app.env.iter().rev().find_map(set));
    of_app.or_else(|| options.env.iter().rev().find_map(set)).or_else(|| own.get(wanted).cloned())
}

/// Tell OpenMP how many threads a rank has CPUs for, and to let them sleep where another rank is to have the CPUs meanwhile.
pub fn tell(plan: &Plan, env: &mut Vec<(String, String)>) {
    let Some(beside) = plan.beside.first() else { return };
    let cpus_per_rank = beside.len() + 1;
    let is_set = |env: &[(String, String)], name: &str| env.iter().any(|(set, _)| set == name);
    if !is_set(env, NUM_THREADS) {
        env.push((NUM_THREADS.into(), cpus_per_rank.to_string()));
    }
    if plan.v > 1 && !SPINNING.iter().any(|name| is_set(env, name)) {
        env.push((WAIT_POLICY.into(), "passive".into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Command, parse};
    use crate::plan::{Wish, plan};
    use crate::topology::Topology;

    fn options(line: &str) -> RunOptions {
        match parse(&line.split(' ').map(str::to_string).collect::<Vec<_>>()) {
            Ok(Command::Run(options)) => *options,
            other => panic!("{other:?}"),
        }
    }

    fn of(line: &str, threads: Option<&str>, cpus: u32) -> u32 {
        let options = options(line);
        let own: Env = threads.iter().map(|threads| (NUM_THREADS.to_string(), threads.to_string())).collect();
        cpus_per_rank(&options, &own, options.apps[0].ranks, cpus, None)
    }

    #[test]
    fn as_asked_for_or_a_share_of_what_is_left() {
        assert_eq!(of("-n 2 --cpus-per-rank 3 x", None, 8), 3);
        assert_eq!(of("-n 2 --map-by slot:PE=2 x", Some("4"), 8), 2);
        assert_eq!(of("-n 2 x", None, 8), 1);
        assert_eq!(of("-n 2 x", Some("2"), 8), 2);
        assert_eq!(of("-n 2 x", Some("16,2"), 8), 4);
        assert_eq!(of("-n 8 x", Some("2"), 8), 1);
        assert_eq!(of("-n 4 -V 2 x", Some("4"), 8), 4);
        assert_eq!(of("x", Some("4"), 8), 1, "no -n: a rank on each core");
        assert_eq!(of("-n 2 --bind-to none x", Some("4"), 8), 1);
        assert_eq!(of("-n 2 -x OMP_NUM_THREADS=3 x", Some("4"), 8), 3);
        assert_eq!(of("-n 2 -bind-to core:3 x", None, 8), 3);
        assert_eq!(of("-n 2 -bind-to socket:2 x", None, 8), 1);
    }

    #[test]
    fn openmp_is_told_unless_the_user_has_said() {
        let told = |v: u32, set: &[(&str, &str)]| {
            let wish = Wish { ranks: Some(2), v: Some(VChoice::Exactly(v)), cpus_per_rank: 2, ..Wish::default() };
            let mut env: Vec<_> = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            tell(&plan(&wish, &[0, 1, 2, 3], &Topology::default()), &mut env);
            env.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(told(1, &[]), ["OMP_NUM_THREADS=2"]);
        assert_eq!(told(2, &[]), ["OMP_NUM_THREADS=2", "OMP_WAIT_POLICY=passive"]);
        assert_eq!(told(2, &[(NUM_THREADS, "1"), ("KMP_BLOCKTIME", "5")]), ["OMP_NUM_THREADS=1", "KMP_BLOCKTIME=5"]);
    }
}
