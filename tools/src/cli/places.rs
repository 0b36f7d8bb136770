//! What command lines say about the CPUs of ranks: `--bind-to`, `--map-by`, `--cpu-bind`, rank files. Read here, given a meaning elsewhere.

use super::apply::{count, set};
use super::options::{MapBy, VChoice};
use super::parse::Line;
use crate::cpus;
use crate::failure::Failure;
use crate::topology::Topology;

type Done = Result<(), String>;

/// A part of a node that holds CPUs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    Hwthread,
    Core,
    L1Cache,
    L2Cache,
    L3Cache,
    Numa,
    Socket,
    Node,
}

impl Resource {
    /// In whichever launcher's words.
    pub fn of(word: &str) -> Option<Resource> {
        Some(match word.to_ascii_lowercase().as_str() {
            "hwthread" | "hwthreads" | "hwt" | "thread" | "threads" | "pu" => Resource::Hwthread,
            "core" | "cores" => Resource::Core,
            "l1cache" | "l1" => Resource::L1Cache,
            "l2cache" | "l2" => Resource::L2Cache,
            "l3cache" | "l3" | "cache" | "cache3" => Resource::L3Cache,
            "numa" | "numanode" | "numa_node" | "ldom" | "ldoms" => Resource::Numa,
            "socket" | "sockets" | "sock" | "package" => Resource::Socket,
            "node" | "board" | "boards" | "machine" => Resource::Node,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Resource::Hwthread => "hwthread",
            Resource::Core => "core",
            Resource::L1Cache => "l1cache",
            Resource::L2Cache => "l2cache",
            Resource::L3Cache => "l3cache",
            Resource::Numa => "numa",
            Resource::Socket => "socket",
            Resource::Node => "node",
        }
    }
}

/// How many CPUs a rank gets.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CpusPerRank {
    Exactly(u32),
    /// As OMP_NUM_THREADS of its environment says.
    Threads,
}

/// What a rank is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindTo {
    None,
    /// So many neighbouring ones.
    To(Resource, u32),
    /// Rank i of a node gets list i, the first again behind the last.
    Lists(Vec<Vec<u32>>),
}

/// A line of a rank file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankPlace {
    pub rank: u32,
    pub host: Option<String>,
    pub slot: Slots,
}

/// The CPUs of a line of a rank file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slots {
    /// As on the rest of the node.
    Any,
    /// By the system's numbers.
    Cpus(Vec<u32>),
    /// Cores of a socket in order; none: all.
    OfSocket(u32, Option<Vec<u32>>),
}

/// `--bind-to`, in the words of Open MPI and Hydra.
pub fn bind_to(line: &mut Line, word: &str) -> Done {
    let (policy, rest) = word.split_once(':').unwrap_or((word, ""));
    let to = match policy.to_ascii_lowercase().as_str() {
        "none" | "no" => BindTo::None,
        "rr" | "rank" => BindTo::To(Resource::Core, 1),
        "user" => BindTo::Lists(cpu_lists(rest, [',', '+'])?),
        "cpu-list" | "cpulist" => BindTo::To(Resource::Core, 1),
        policy => match Resource::of(policy) {
            // Open MPI has `:overload-allowed` here, Hydra a number.
            Some(resource) => BindTo::To(resource, rest.parse().unwrap_or(1)),
            None => {
                return Err(format!("`{word}` is not one of none, hwthread, core, l3cache, numa, socket, user:0,1+2"));
            }
        },
    };
    put_binding(line, to)
}

fn put_binding(line: &mut Line, to: BindTo) -> Done {
    line.job.bind = Some(to != BindTo::None);
    set(&mut line.job.bind_to, to)
}

/// `0,2+3,7` or `0,1:2-3`: lists of CPUs, the first separator between them and the second inside.
fn cpu_lists(text: &str, [between, inside]: [char; 2]) -> Result<Vec<Vec<u32>>, String> {
    text.split(between).map(|list| cpus::parse_list(&list.replace(inside, ","))).collect()
}

/// srun's and PALS' `--cpu-bind`: words with commas between them, `verbose` among them.
pub fn cpu_bind(line: &mut Line, word: &str) -> Done {
    let (kind, rest) = match word.split_once(',') {
        Some(("verbose" | "v" | "quiet" | "q", rest)) => {
            line.job.report_bindings |= word.starts_with('v');
            (rest, "")
        }
        _ => (word, ""),
    };
    let (kind, list) = kind.split_once(':').unwrap_or((kind, rest));
    let to = match kind.to_ascii_lowercase().as_str() {
        "verbose" | "v" => return super::apply::put(&mut line.job.report_bindings, true),
        "quiet" | "q" | "mpmd" => return Ok(()),
        "no" | "none" => BindTo::None,
        "rank" | "cpu" => BindTo::To(Resource::Core, 1),
        "rank_ldom" => BindTo::To(Resource::Numa, 1),
        "depth" => {
            line.job.cpus_per_rank.get_or_insert(CpusPerRank::Threads);
            BindTo::To(Resource::Core, 1)
        }
        "list" => BindTo::Lists(cpu_lists(list, [':', ','])?),
        "map_cpu" => BindTo::Lists(cpu_lists(list, [',', '+'])?),
        "map_ldom" => BindTo::To(Resource::Numa, 1),
        "mask_cpu" | "mask" => BindTo::Lists(list.split(',').map(mask).collect::<Result<_, _>>()?),
        kind => match Resource::of(kind) {
            Some(resource) => BindTo::To(resource, 1),
            // aprun's `-cc 0,2-3`.
            None if kind.starts_with(|c: char| c.is_ascii_digit()) => {
                let lists = if word.contains(':') { cpu_lists(word, [':', ','])? } else { each(word)? };
                BindTo::Lists(lists)
            }
            None => {
                return Err(format!(
                    "`{word}` is not one of none, rank, thread, core, socket, numa, depth, list:0,1:2-3, map_cpu:0,1, mask_cpu:0x1"
                ));
            }
        },
    };
    put_binding(line, to)
}

/// One CPU for each rank in turn.
fn each(word: &str) -> Result<Vec<Vec<u32>>, String> {
    Ok(cpus::parse_list(word)?.into_iter().map(|cpu| vec![cpu]).collect())
}

/// `0x5` as 0, 2.
fn mask(word: &str) -> Result<Vec<u32>, String> {
    let digits = word.trim().trim_start_matches("0x").trim_start_matches("0X");
    let mut cpus = Vec::new();
    for (place, digit) in (0u32..).zip(digits.chars().rev()) {
        let value = digit.to_digit(16).ok_or_else(|| format!("`{word}` is not a mask of CPUs as 0x5"))?;
        cpus.extend((0..4).filter(|bit| value >> bit & 1 == 1).map(|bit| 4 * place + bit));
    }
    if cpus.is_empty() { Err(format!("`{word}` has no CPU")) } else { Ok(cpus) }
}

/// `--cpus-per-rank` and its kin, in the words of all launchers.
pub fn cpus_per_rank(line: &mut Line, word: &str) -> Done {
    set(&mut line.job.cpus_per_rank, CpusPerRank::Exactly(count(word, "CPUs for a rank")?))
}

/// So many ranks on each of a node's parts.
pub fn ranks_per(line: &mut Line, word: &str, resource: Resource) -> Done {
    let ranks = count(word, "ranks per resource")?;
    match resource {
        Resource::Core | Resource::Hwthread => set(&mut line.job.v, VChoice::Exactly(ranks)),
        Resource::Node => set(&mut line.job.ranks_per_node, ranks),
        _ => set(&mut line.job.ranks_per, (ranks, resource)),
    }
}

/// `--map-by`: a kind and what modifies it, in the words of Open MPI and Hydra, and vmpi's own.
pub fn map_by(line: &mut Line, word: &str) -> Done {
    if let Some(path) = word.strip_prefix("affinity:") {
        line.job.map_by = MapBy::Affinity(path.into());
        return Ok(());
    }
    if let Some(seed) = word.strip_prefix("random:") {
        line.job.map_by = MapBy::Random(seed.parse().map_err(|_| format!("`{seed}` is not a number to begin with"))?);
        return Ok(());
    }
    if word == "dist" || word.starts_with("dist:") {
        line.ignore(&format!("--map-by {word}"));
        return Ok(());
    }
    if let Some(list) = prefix(word, "pe-list=") {
        let list = list.split(':').next().unwrap_or(list);
        line.job.cores = Some(cpus::parse_list(list)?);
        line.job.bind = Some(true);
        return Ok(());
    }
    let (head, rest) = word.split_once(':').unwrap_or((word, ""));
    let modifiers = if head.eq_ignore_ascii_case("ppr") {
        let say = "say ppr:N:node, ppr:N:socket, ppr:N:numa, ppr:N:l3cache or ppr:N:core";
        let (n, rest) = rest.split_once(':').ok_or(say)?;
        let (unit, more) = rest.split_once([':', ',']).unwrap_or((rest, ""));
        let resource =
            Resource::of(unit).ok_or_else(|| format!("`{unit}` is not one of node, socket, numa, l3cache, core"))?;
        ranks_per(line, n, resource)?;
        more.to_string()
    } else {
        let (kind, more) = head.split_once(',').unwrap_or((head, ""));
        line.job.map_by = by(kind).ok_or_else(|| {
            format!(
                "`{word}` is not one of slot, node, socket, numa, l3cache, core, rr, ppr:N:node, ppr:N:socket, \
                 ppr:N:core, affinity:FILE, random:SEED"
            )
        })?;
        format!("{more}:{rest}")
    };
    modifiers.split([':', ',']).filter(|word| !word.is_empty()).try_for_each(|word| modifier(line, word))
}

fn by(kind: &str) -> Option<MapBy> {
    Some(match kind.to_ascii_lowercase().as_str() {
        "" | "slot" | "block" | "user" | "rankfile" => MapBy::Block,
        "rr" | "cyclic" | "seq" => MapBy::RoundRobin,
        kind => match Resource::of(kind)? {
            Resource::Node => MapBy::Node,
            Resource::Core | Resource::Hwthread => MapBy::RoundRobin,
            resource => MapBy::Each(resource),
        },
    })
}

/// What stands behind the kind: `PE=2`, `OVERSUBSCRIBE` ...
fn modifier(line: &mut Line, word: &str) -> Done {
    match word.to_ascii_lowercase().as_str() {
        "display" => line.job.report_bindings = true,
        "donotlaunch" => line.job.dry_run = true,
        "oversubscribe" | "overload-allowed" => {}
        _ => match (prefix(word, "pe="), prefix(word, "file=")) {
            (Some(n), _) => cpus_per_rank(line, n)?,
            (_, Some(file)) => rank_file(line, file)?,
            _ => line.ignore(&format!("--map-by ...:{word}")),
        },
    }
    Ok(())
}

/// What follows `with`, whichever way that is written.
fn prefix<'a>(word: &'a str, with: &str) -> Option<&'a str> {
    let (head, rest) = word.split_at_checked(with.len())?;
    head.eq_ignore_ascii_case(with).then_some(rest)
}

/// srun's `--distribution`: blocks or rounds, of nodes first, then of sockets.
pub fn distribution(line: &mut Line, word: &str) -> Done {
    let nodes = word.split([':', ',']).next().unwrap_or(word);
    line.job.map_by = match nodes.to_ascii_lowercase().as_str() {
        "" | "*" | "block" => MapBy::Block,
        "cyclic" => MapBy::Node,
        plane if plane.starts_with("plane=") || plane == "arbitrary" => {
            line.ignore(&format!("--distribution {plane}"));
            return Ok(());
        }
        _ => return Err(format!("`{word}` is not one of block, cyclic, plane=N, arbitrary")),
    };
    Ok(())
}

/// srun's `--hint`: what concerns the hyperthreads of a core.
pub fn hint(line: &mut Line, word: &str) -> Done {
    match word {
        "nomultithread" | "compute_bound" => set(&mut line.job.threads_per_core, 1),
        "multithread" => Ok(()),
        "memory_bound" => {
            line.ignore("--hint memory_bound");
            Ok(())
        }
        _ => Err(format!("`{word}` is not one of nomultithread, multithread, compute_bound, memory_bound")),
    }
}

/// Read a rank file.
pub fn rank_file(line: &mut Line, path: &str) -> Done {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
    line.job.rank_places = rank_places(&text).map_err(|why| format!("{path}, {why}"))?;
    Ok(())
}

/// Lines of a rank file: `rank 0=host slot=1:0-2` (Open MPI), `0=host slot=1`, `0 0,1 host` (rank, CPUs, host).
///
/// # Errors
/// The first line that makes no sense, by its number.
fn rank_places(text: &str) -> Result<Vec<RankPlace>, String> {
    let mut places: Vec<RankPlace> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let place = rank_place(line).map_err(|why| format!("line {number}: {why}"))?;
        if places.iter().any(|known| known.rank == place.rank) {
            return Err(format!("line {number}: rank {} has a place already", place.rank));
        }
        places.push(place);
    }
    places.sort_by_key(|place| place.rank);
    Ok(places)
}

fn rank_place(line: &str) -> Result<RankPlace, String> {
    let form = || {
        format!(
            "`{line}` is not understood; a line is `rank 0=HOST`, `rank 0=HOST slot=0-1` or `rank 0=HOST slot=SOCKET:CORES`"
        )
    };
    let rest = line.strip_prefix("rank").map_or(line, str::trim_start);
    let (rank, rest) = rest.split_once('=').ok_or_else(form)?;
    let rank = rank.trim().parse().map_err(|_| form())?;
    let (host, slot) = match rest.split_once(char::is_whitespace) {
        Some((host, slot)) => (host, Some(slot.trim())),
        None => match rest.starts_with("slot") {
            true => ("", Some(rest)),
            false => (rest, None),
        },
    };
    // `+n0`: the first node of those that there are.
    let host = if host.is_empty() || host == "*" { None } else { Some(host.to_string()) };
    let Some(slot) = slot else { return Ok(RankPlace { rank, host, slot: Slots::Any }) };
    let slot = slot.strip_prefix("slots").or_else(|| slot.strip_prefix("slot")).ok_or_else(form)?;
    let slot = slot.trim_start().strip_prefix('=').ok_or_else(form)?.trim();
    let slot = match slot.trim_matches('"').split_once(':') {
        Some((socket, cores)) => {
            let socket = socket.trim_start_matches(['s', 'S']).parse().map_err(|_| form())?;
            Slots::OfSocket(socket, if cores == "*" { None } else { Some(cpus::parse_list(cores)?) })
        }
        None => Slots::Cpus(cpus::parse_list(slot.trim_start_matches(['p', 'P']))?),
    };
    Ok(RankPlace { rank, host, slot })
}

/// The CPUs of each rank of a rank file, in the order of ranks, where each has some; none if no rank has.
///
/// # Errors
/// Exit code 2: a rank that has none where others have; cores of a socket that the node does not have.
pub fn named_cpus(places: &[&RankPlace], topology: &Topology) -> Result<Option<Vec<Vec<u32>>>, Failure> {
    if places.iter().all(|place| place.slot == Slots::Any) {
        return Ok(None);
    }
    let cpus = |place: &&RankPlace| match &place.slot {
        Slots::Cpus(cpus) => Ok(cpus.clone()),
        Slots::OfSocket(socket, cores) => topology.cores_of_socket(*socket, cores.as_deref()).ok_or_else(|| {
            Failure::usage(format!(
                "the rank file puts rank {} on cores of socket {socket} that its node does not have",
                place.rank
            ))
        }),
        Slots::Any => {
            Err(Failure::usage(format!("the rank file gives rank {} no CPU (slot=3), and others one", place.rank)))
        }
    };
    places.iter().map(cpus).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_files() {
        let text = "# ranks\nrank 1=b slot=0:0-2\nrank 0=a slot=3\nrank 2=+n1 slots=1:*\n3= slot=p4-5\nrank 4=c\n";
        let places = rank_places(text).unwrap();
        let host = |name: &str| Some(name.to_string());
        let wanted = [
            RankPlace { rank: 0, host: host("a"), slot: Slots::Cpus(vec![3]) },
            RankPlace { rank: 1, host: host("b"), slot: Slots::OfSocket(0, Some(vec![0, 1, 2])) },
            RankPlace { rank: 2, host: host("+n1"), slot: Slots::OfSocket(1, None) },
            RankPlace { rank: 3, host: None, slot: Slots::Cpus(vec![4, 5]) },
            RankPlace { rank: 4, host: host("c"), slot: Slots::Any },
        ];
        assert_eq!(places, wanted);
        for (text, part) in [
            ("rank 0=a slot=0\nrank 0=b slot=1", "line 2: rank 0"),
            ("\nrank x=a slot=1", "line 2"),
            ("hello", "line 1"),
        ] {
            let why = rank_places(text).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        let machine = Topology::synthetic("package:2 core:4 pu:2").unwrap();
        let cpus = |ranks: &[usize]| named_cpus(&ranks.iter().map(|rank| &places[*rank]).collect::<Vec<_>>(), &machine);
        assert_eq!(cpus(&[0, 3]), Ok(Some(vec![vec![3], vec![4, 5]])));
        assert_eq!(cpus(&[1, 2]), Ok(Some(vec![vec![0, 2, 4], vec![8, 10, 12, 14]])));
        assert_eq!(cpus(&[4]), Ok(None));
        assert!(cpus(&[0, 4]).is_err());
        let small = named_cpus(&[&places[2]], &Topology::default()).unwrap_err();
        assert!(small.sentence.contains("rank 2 on cores of socket 1"), "{small}");
    }

    #[test]
    fn masks() {
        assert_eq!(mask("0x5"), Ok(vec![0, 2]));
        assert_eq!(mask("0x100000000000000000"), Ok(vec![68]));
        assert!(mask("0xg").is_err() && mask("0x0").is_err());
    }
}
