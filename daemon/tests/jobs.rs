//! Jobs from Submit to Finished: how ranks end, and that nothing is left.

mod common;
use common::*;

use std::fs;
use std::os::fd::AsRawFd;

use vmpi_shared::control::{Cause, Ended, Reply, Request, Stdio};

#[test]
#[ignore = "the program of ranks, not a test"]
fn rank_program() {
    common::rank_program();
}

/// Spec, cause, code; ranks end as the third column says.
struct Case {
    name: &'static str,
    spec: vmpi_shared::control::JobSpec,
    check: fn(&Finished) -> bool,
    code: i32,
}

fn failed(f: &Finished, expected: Ended, initialized: bool, finalized: bool) -> bool {
    matches!(&f.cause, Cause::RankFailed { ended, initialized: i, finalized: z, .. }
        if *ended == expected && *i == initialized && *z == finalized)
}

#[test]
fn ranks_end_in_every_way() {
    let vmpid = Vmpid::start(&[]);
    let mut go_on = shell("test $VMPI_RANK != 1 || exit 5", 4);
    go_on.kill_on_failure = false;
    let mut two_programs = job("/bin/true", &[], 2);
    two_programs.apps.push(shell("exit $((VMPI_RANK == 2 ? 0 : 4))", 1).apps.remove(0));
    (two_programs.ranks, two_programs.placement) = (3, vec![0; 3]);
    let cases = [
        Case { name: "true", spec: job("/bin/true", &[], 4), check: |f| f.cause == Cause::Success, code: 0 },
        Case {
            name: "exit code",
            spec: shell("test $VMPI_RANK != 2 || exit 7; exec sleep 100", 4),
            check: |f| {
                matches!(f.cause, Cause::RankFailed { rank: 2, ended: Ended::Exited(7), initialized: false, .. })
            },
            code: 7,
        },
        Case {
            name: "signal",
            spec: shell("test $VMPI_RANK != 1 || kill -SEGV $$; exec sleep 100", 3),
            check: |f| matches!(f.cause, Cause::RankFailed { rank: 1, ended: Ended::Signaled(11), .. }),
            code: 139,
        },
        Case {
            name: "real-time signal",
            spec: shell("kill -40 $$", 1),
            check: |f| failed(f, Ended::Signaled(40), false, false),
            code: 168,
        },
        Case {
            name: "others go on",
            spec: go_on,
            check: |f| f.ends.len() == 4 && f.ends.iter().filter(|end| end.ended == Ended::Exited(0)).count() == 3,
            code: 5,
        },
        Case { name: "MPMD", spec: two_programs, check: |f| f.cause == Cause::Success, code: 0 },
        Case {
            name: "a good MPI program",
            spec: script("attach finalize exit=0", 4),
            check: |f| f.cause == Cause::Success && f.ends.iter().all(|end| end.initialized && end.finalized),
            code: 0,
        },
        Case {
            name: "no MPI_Finalize",
            spec: script("attach exit=0", 1),
            check: |f| failed(f, Ended::Exited(0), true, false),
            code: 1,
        },
        Case {
            name: "a code after MPI_Finalize",
            spec: script("attach finalize exit=3", 1),
            check: |f| failed(f, Ended::Exited(3), true, true),
            code: 3,
        },
        Case {
            name: "killed in MPI",
            spec: script("attach kill=9", 1),
            check: |f| failed(f, Ended::Signaled(9), true, false),
            code: 137,
        },
        Case {
            name: "MPI_Abort",
            spec: script("attach abort=42 sleep", 3),
            check: |f| matches!(&f.cause, Cause::Aborted { code: 42, reason, .. } if reason == "asked to"),
            code: 42,
        },
        Case {
            name: "MPI_Abort, then at once exit",
            spec: script("attach abort=0 exit=9", 1),
            check: |f| matches!(f.cause, Cause::Aborted { rank: 0, code: 0, .. }),
            code: 1,
        },
        Case {
            name: "an MPI program that closes all its descriptors",
            spec: script("attach finalize forget exit=0", 2),
            check: |f| f.cause == Cause::Success,
            code: 0,
        },
        Case {
            name: "another job's word",
            spec: script("word=1.2.3 attach exit=0", 1),
            check: |f| failed(f, Ended::Exited(99), false, false),
            code: 99,
        },
        Case {
            name: "no such rank",
            spec: script("rank=77 attach exit=0", 1),
            check: |f| failed(f, Ended::Exited(99), false, false),
            code: 99,
        },
        Case {
            name: "one rank twice",
            spec: script("attach attach exit=0", 1),
            check: |f| failed(f, Ended::Exited(99), true, false),
            code: 99,
        },
    ];
    for case in cases {
        let finished = vmpid.run(&case.spec);
        assert!((case.check)(&finished), "{}: {finished:?}", case.name);
        assert_eq!(finished.code, case.code, "{}: {finished:?}", case.name);
        assert_eq!(finished.ends.len(), case.spec.ranks as usize, "{}: every rank's end is told", case.name);
        for pid in finished.pids {
            assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "{}: {pid} lives after Finished", case.name);
        }
    }
    vmpid.stop();
}

#[test]
fn wrappers_are_seen_through() {
    let vmpid = Vmpid::start(&[]);
    let below = |steps: &str, before: &str, after: &str| {
        let mut spec = script(steps, 2);
        let app = &mut spec.apps[0];
        let command = format!("{before} \"$0\" \"$@\" {after}");
        app.argv = ["/bin/sh", "-c", &command].into_iter().map(str::to_owned).collect();
        app.argv.push(std::mem::replace(&mut app.program, "/bin/sh".into()));
        app.argv.extend(RANK_ARGUMENTS.map(str::to_owned));
        spec
    };
    let good = vmpid.run(&below("attach finalize exit=0", "", "; exit 0"));
    assert_eq!(good.cause, Cause::Success, "{good:?}");
    assert!(good.ends.iter().all(|end| end.initialized && end.finalized && !good.pids.contains(&end.pid)));
    let told = vmpid.run(&below("attach exit=6", "", "; exit $?"));
    assert!(failed(&told, Ended::Exited(6), true, false), "{told:?}");
    let hidden = vmpid.run(&below("attach kill=11", "", "; exit 0"));
    assert!(hidden.code != 0, "a wrapper's 0 does not hide a crash: {hidden:?}");
    let lingering = vmpid.run(&below("attach kill=11", "", "; sleep 1000"));
    let is_unfinished =
        |f: &Finished| matches!(f.cause, Cause::Unfinished { pid, parent, .. } if pid != parent) && f.code == 1;
    assert!(is_unfinished(&lingering), "{lingering:?}");
    // The shell ends at once, the MPI process goes on: the rank ends when that does.
    let flag = fresh_dir();
    let steps = format!("attach touch={} finalize exit=0", flag.display());
    let outlived = vmpid.run(&below(&steps, "", &format!("& while ! test -e {}; do sleep 0.01; done", flag.display())));
    assert_eq!(outlived.cause, Cause::Success, "{outlived:?}");
    fs::remove_file(flag).unwrap();
    vmpid.stop();
}

#[test]
fn what_cannot_be_executed_is_told() {
    let vmpid = Vmpid::start(&[]);
    let dir = fresh_dir();
    fs::create_dir(&dir).unwrap();
    let file = |name: &str, content: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let mut elsewhere = job("/bin/true", &[], 2);
    elsewhere.apps[0].cwd = "/no/such/directory".into();
    let table = [
        (job("/no/such/program", &[], 2), 127, "cannot execute /no/such/program (rank 0)"),
        (job(&file("plain", "x", 0o644), &[], 2), 126, "Permission denied"),
        (job("/tmp", &[], 1), 126, "Permission denied"),
        (job(&file("lost", "#!/no/such/interpreter\n", 0o755), &[], 1), 127, "its interpreter or loader is not"),
        (elsewhere, 126, "/no/such/directory"),
    ];
    for (spec, expected, sentence) in table {
        let mut launcher = vmpid.submit(&spec);
        match expect_reply(&mut launcher.connection) {
            Reply::Refused { reason, code } => {
                assert_eq!(code, expected, "{reason}");
                assert!(reason.contains(sentence), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
    // Some ranks run by the time another cannot be started: they go, and the refusal is all that is said.
    let mut second = shell("exec sleep 1000", 2);
    second.apps.push(job("/no/such/program", &[], 1).apps.remove(0));
    (second.ranks, second.placement) = (3, vec![0; 3]);
    let mut launcher = vmpid.submit(&second);
    assert!(matches!(expect_reply(&mut launcher.connection), Reply::Refused { code: 127, .. }));
    // A script without #! runs under sh, as with execvp.
    let script = file("script", "exit $(($# + 20))\n", 0o755);
    assert_eq!(vmpid.run(&job(&script, &["a", "b"], 1)).code, 22);
    assert_eq!(vmpid.run(&job(&script, &[], 1)).code, 20);
    fs::remove_dir_all(dir).unwrap();
    vmpid.stop();
}

#[test]
fn ranks_know_who_they_are_and_share_group_and_session() {
    let vmpid = Vmpid::start(&[]);
    let out = fs::File::from(pipe_file());
    let mut spec = shell(
        "read x; echo $VMPI_RANK $VMPI_SIZE $VMPI_V $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_LOCAL_SIZE $PMI_RANK $PMI_SIZE \
         $MPI_LOCALRANKID $MV2_COMM_WORLD_LOCAL_RANK $(ps -o pgid=,sid= -p $$) $(pwd) $MINE ${x:-none}; \
         grep -E 'SigBlk|SigIgn' /proc/self/status >&2",
        3,
    );
    spec.apps[0].env.push(("MINE".into(), "mine".into()));
    spec.apps[0].env.push(("VMPI_RANK".into(), "stale".into()));
    spec.apps[0].cwd = "/usr".into();
    spec.stdio = Stdio::PerRank;
    spec.fds = 7;
    let stdin = pipe_file();
    nix::unistd::write(&stdin, b"input\n").unwrap();
    nix::unistd::lseek(&stdin, 0, nix::unistd::Whence::SeekSet).unwrap();
    let outs: Vec<_> = (0..6).map(|_| pipe_file()).collect();
    let (mut connection, daemon) = vmpid.greet();
    connection.send(&Request::Submit { spec: Box::new(spec) }, &[]).unwrap();
    assert!(matches!(expect_reply(&mut connection), Reply::Submitted { .. }));
    let mut fds = vec![stdin.as_raw_fd()];
    fds.extend(outs.iter().map(AsRawFd::as_raw_fd));
    connection.send(&Request::Fds { count: 7 }, &fds).unwrap();
    let finished = Launcher { connection, job: 1, pids: vec![], ends: vec![] }.finish();
    assert_eq!(finished.cause, Cause::Success);
    for rank in 0..3 {
        let text = read_all(&outs[2 * rank]);
        let words: Vec<&str> = text.split_whitespace().collect();
        let r = rank.to_string();
        assert_eq!(words[..9], [&r, "3", "3", &r, "3", &r, "3", &r, &r], "{text}");
        assert_eq!(words[9], finished.pids[0].to_string(), "one process group");
        assert_eq!(words[10], daemon.to_string(), "the daemon's session");
        assert_eq!(words[11..], ["/usr", "mine", if rank == 0 { "input" } else { "none" }]);
        let signals = read_all(&outs[2 * rank + 1]);
        for line in signals.lines() {
            // Signals 32 and 33 belong to glibc, which lets nobody change them.
            let set = u64::from_str_radix(line.rsplit_once('\t').unwrap().1, 16).unwrap() & !(0b11 << 31);
            assert_eq!(set, 0, "default mask and dispositions: {line}");
        }
    }
    drop(out);
    vmpid.stop();
}

#[test]
fn bound_ranks_stay_on_their_cpu() {
    let vmpid = Vmpid::start(&[]);
    let cpus = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    let cpus: Vec<u32> = (0..1024).filter(|cpu| cpus.is_set(*cpu as usize) == Ok(true)).take(2).collect();
    let command = "test \"$(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)\" = \"$(echo $CPUS | cut -d' ' -f$((VMPI_RANK % N + 1)))\"";
    let mut spec = shell(command, 4);
    let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    spec.apps[0].env.push(("CPUS".into(), list));
    spec.apps[0].env.push(("N".into(), cpus.len().to_string()));
    spec.placement = (0..4).map(|rank| rank % cpus.len() as u32).collect();
    (spec.cpus, spec.bind) = (cpus, true);
    assert_eq!(vmpid.run(&spec).cause, Cause::Success);
    vmpid.stop();
}

#[test]
fn many_ranks_and_two_jobs_at_once() {
    let vmpid = Vmpid::start(&[]);
    let long = vmpid.launch(&shell("exec sleep 1000", 2));
    let mut many = script("attach finalize exit=0", 100);
    many.stdio = Stdio::PerRank;
    many.fds = 201;
    let finished = vmpid.run(&many);
    assert_eq!((finished.cause, finished.ends.len()), (Cause::Success, 100));
    let (mut tool, _) = vmpid.greet();
    tool.send(&Request::Jobs, &[]).unwrap();
    match expect_reply(&mut tool) {
        Reply::Jobs { jobs } => {
            assert_eq!(jobs.len(), 1);
            assert_eq!((jobs[0].job, jobs[0].ranks, jobs[0].rank_list[1].pid), (long.job, 2, long.pids[1]));
            assert!(jobs[0].rank_list[0].rss_bytes > 0);
        }
        other => panic!("{other:?}"),
    }
    let second = vmpid.run(&shell("exit 3", 2));
    assert_eq!(second.code, 3);
    assert!(long.pids.iter().all(|pid| fs::exists(format!("/proc/{pid}")).unwrap()), "the other job is not touched");
    let mut long = long;
    let cancel = Request::Cancel { reason: "enough".into(), code: 130, signal: libc::SIGTERM, grace_ms: 2000 };
    long.connection.send(&cancel, &[]).unwrap();
    let cancelled = long.finish();
    assert!(matches!(cancelled.cause, Cause::Cancelled { code: 130, .. }));
    assert!(cancelled.ends.iter().all(|end| end.ended == Ended::Signaled(libc::SIGTERM)));
    vmpid.stop();
}

#[test]
fn signals_are_forwarded_and_term_may_be_handled() {
    let vmpid = Vmpid::start(&[]);
    let flag = fresh_dir();
    let command = format!(
        "trap 'exit 0' USR1; trap 'touch {0}.term; exit 9' TERM; touch {0}.$VMPI_RANK; while :; do sleep 0.01; done",
        flag.display()
    );
    let file = |suffix: &str| format!("{}.{suffix}", flag.display());
    let mut launcher = vmpid.launch(&shell(&command, 2));
    wait_for("traps", || ["0", "1"].iter().all(|rank| fs::exists(file(rank)).unwrap()));
    launcher.connection.send(&Request::Forward { signal: libc::SIGUSR1 }, &[]).unwrap();
    assert_eq!(launcher.finish().cause, Cause::Success);
    ["0", "1"].iter().for_each(|rank| fs::remove_file(file(rank)).unwrap());
    let mut launcher = vmpid.launch(&shell(&command, 2));
    wait_for("traps", || ["0", "1"].iter().all(|rank| fs::exists(file(rank)).unwrap()));
    let cancel = Request::Cancel { reason: "enough".into(), code: 143, signal: libc::SIGTERM, grace_ms: 20_000 };
    launcher.connection.send(&cancel, &[]).unwrap();
    let finished = launcher.finish();
    assert!(matches!(finished.cause, Cause::Cancelled { .. }));
    assert!(finished.ends.iter().all(|end| end.ended == Ended::Exited(9)), "{finished:?}");
    ["0", "1", "term"].iter().for_each(|suffix| fs::remove_file(file(suffix)).unwrap());
    // One that ignores TERM, and is stopped, is killed after the grace time.
    let mut launcher = vmpid.launch(&shell("trap '' TERM; kill -STOP $$; while :; do sleep 1; done", 1));
    let cancel = Request::Cancel { reason: "enough".into(), code: 143, signal: libc::SIGTERM, grace_ms: 50 };
    launcher.connection.send(&cancel, &[]).unwrap();
    assert!(matches!(launcher.finish().cause, Cause::Cancelled { .. }));
    vmpid.stop();
}

#[test]
fn nothing_survives_its_job_but_what_a_good_end_leaves_running() {
    let vmpid = Vmpid::start(&[]);
    let marks = |vmpid: &Vmpid| format!("VMPI_SOCKET={}", vmpid.socket().canonicalize().unwrap().display());
    let other = vmpid.launch(&shell("exec sleep 1000", 1));
    // Background processes: in the group; in a session of their own; whose parents have gone; without our environment.
    let mark = fresh_dir().into_os_string().into_string().unwrap();
    let commands = ["sleep 1000 &", "setsid sleep 1000 &", "setsid setsid sh -c 'sleep 1000; true' &"];
    let scrubbed = "setsid env -i MARK=$MARK sleep 1000 &";
    let run_on = |command: &str, ranks: u32| {
        // Time for what has been started to become what it is.
        let mut spec = shell(&command.replacen(" &", " &\nsleep 0.5", 1), ranks);
        spec.apps[0].env.push(("MARK".into(), mark.clone()));
        vmpid.run(&spec)
    };
    let run = |command: &str| run_on(command, 2);
    let named = |finished: &Finished| finished.report.helpers.iter().filter(|its| its.name == "sleep").count();
    for command in commands {
        // One rank: of two, the first to fail is the other's end, perhaps before that has started anything.
        let finished = run_on(&format!("{command}\nexit 3"), 1);
        assert_eq!((finished.code, named(&finished)), (3, 1), "{command}: {:?}", finished.report.helpers);
        assert_eq!(processes_with(&marks(&vmpid)), other.pids, "{command}");
    }
    let mut left = Vec::new();
    for command in commands {
        let finished = run(command);
        assert_eq!((finished.cause.clone(), named(&finished)), (Cause::Success, 2), "{command}");
        left.extend(finished.report.helpers.iter().map(|its| its.pid));
    }
    drop(other);
    let alive =
        |left: &[i32]| left.iter().filter(|pid| fs::exists(format!("/proc/{pid}/exe")).unwrap_or(false)).count();
    wait_for("the launcher's death to be noticed", || {
        processes_with(&marks(&vmpid)).iter().all(|pid| left.contains(pid))
    });
    assert_eq!(run(&format!("{scrubbed}\nexit 3")).code, 3);
    assert!(processes_with(&format!("MARK={mark}")).iter().all(|pid| left.contains(pid)));
    left.extend(run(scrubbed).report.helpers.iter().map(|its| its.pid));
    // Later jobs' ends are not theirs, nor the daemon's.
    assert_eq!(run("exit 3").report.helpers, []);
    assert_eq!(alive(&left), left.len());
    let page = vmpid.status_page();
    signal(vmpid.supervisor.id() as i32, libc::SIGTERM);
    let mut vmpid = vmpid;
    assert_eq!(vmpid.supervisor.wait().unwrap().code(), Some(0));
    assert_eq!(alive(&left), left.len());
    left.iter().for_each(|pid| signal(*pid, libc::SIGKILL));
    wait_for("what was left to be gone", || alive(&left) == 0);
    vmpid.assert_nothing_left(page);
}

#[test]
fn a_specification_that_makes_no_sense_is_refused() {
    let vmpid = Vmpid::start(&[]);
    let (mut connection, _) = vmpid.greet();
    let mut bad = job("/bin/true", &[], 2);
    bad.cpus = vec![1_000_000];
    connection.send(&Request::Submit { spec: Box::new(bad) }, &[]).unwrap();
    assert!(matches!(expect_reply(&mut connection), Reply::Refused { code: 2, .. }));
    let mut large = job("/bin/true", &[], 5_000_000);
    large.stdio = Stdio::PerRank;
    large.fds = 10_000_001;
    connection.send(&Request::Submit { spec: Box::new(large) }, &[]).unwrap();
    match expect_reply(&mut connection) {
        Reply::Refused { code: 125, reason } => assert!(reason.contains("open files"), "{reason}"),
        other => panic!("{other:?}"),
    }
    vmpid.stop();
}

fn pipe_file() -> std::os::fd::OwnedFd {
    nix::sys::memfd::memfd_create("test", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap()
}

fn read_all(fd: &std::os::fd::OwnedFd) -> String {
    let mut bytes = vec![0; 65536];
    let count = nix::sys::uio::pread(fd, &mut bytes, 0).unwrap();
    String::from_utf8(bytes[..count].to_vec()).unwrap()
}
