#!/bin/sh
# MPICH 5.0.2 and mpi4py 4.1.2 (PyPI). os.fork() in a rank, and the child, which calls nothing of MPI, ends with sys.exit(0).
# Expected: nothing, since fork is allowed as long as the child keeps away from MPI. Seen: mpi4py has registered MPI_Finalize for the end
# of the interpreter, and the child has that, too. All goes well (the child's status is 0, an allreduce after it is right) until the parent's own
# MPI_Finalize finds its connection to Hydra closed, and the finished job fails with 15. os._exit(0), as multiprocessing's "fork" does, is well.
# An MPI should know in MPI_Finalize that it is in a child.
# Seen: "sys.exit: both ranks computed, exit code 15", "os._exit: both ranks computed, exit code 0".
set -eu
d=$(mktemp -d)
ls /dev/shm > "$d/before"
# The job that fails leaves its memory file.
trap 'ls /dev/shm | grep -vxFf "$d/before" | grep "^mpich_shm_" | sed "s,^,/dev/shm/," | xargs -r rm -f; rm -rf "$d"' EXIT
cat > "$d/script.py" <<'P'
import os, sys
from mpi4py import MPI
child = os.fork()
if child == 0:
    eval(sys.argv[1])(0)
os.waitpid(child, 0)
os.write(1, f"sum {MPI.COMM_WORLD.allreduce(1)}\n".encode())
P
python3 -m venv "$d/venv"
"$d/venv/bin/pip" install -q --disable-pip-version-check mpich==5.0.2 mpi4py==4.1.2
for how in sys.exit os._exit; do
    code=0
    timeout -k 5 60 "$d/venv/bin/mpiexec" -n 2 "$d/venv/bin/python" "$d/script.py" $how > "$d/said" 2> /dev/null || code=$?
    if [ "$(grep -c 'sum 2' "$d/said")" = 2 ]; then echo "$how: both ranks computed, exit code $code"; fi
done | tee "$d/seen"
printf '%s\n' "sys.exit: both ranks computed, exit code 15" "os._exit: both ranks computed, exit code 0" | cmp - "$d/seen"
