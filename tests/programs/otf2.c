/* What an archive is to show, by counts that are known: each rank sends 20 messages of 100 bytes with tag 7 to its right neighbour of MPI_COMM_WORLD; in a communicator of
 * all in reverse order rank 0 sends 5 of 8 bytes with tag 9 to the last; to itself 2 of 16 bytes. Collectives of the world: 3 broadcasts of 40 bytes from rank 1, 4
 * reductions to all of 24 bytes, 2 gathers of 8 bytes a rank at rank 0; of the reversed one: 5 reductions of 8 bytes at its last rank, 2 barriers; of MPI_COMM_SELF: 3
 * barriers. One barrier that is not waited for in its call (MPI_Ibarrier) is none of these. Regions "one" and "two" overlap. Prints "counted". */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    char to[100] = {0}, from[100];
    int rank, size, me, one[10] = {0}, *all;
    double in[3] = {1, 2, 3}, out[3];
    MPI_Comm back;
    MPI_Request request[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int (*begin)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "MPIX_Region_begin");
    int (*end)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "MPIX_Region_end");
    all = calloc(2 * size, sizeof *all);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &back);
    MPI_Comm_rank(back, &me);
    if (begin) begin("one");
    for (int i = 0; i < 20; i++)
        MPI_Sendrecv(to, 100, MPI_BYTE, (rank + 1) % size, 7, from, 100, MPI_BYTE, (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (begin) begin("two");
    for (int i = 0; i < 5; i++) {
        if (me == 0) MPI_Send(to, 8, MPI_BYTE, size - 1, 9, back);
        if (me == size - 1) MPI_Recv(from, 8, MPI_BYTE, 0, 9, back, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 2; i++) {
        MPI_Irecv(from, 16, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request[0]);
        MPI_Isend(to, 16, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request[1]);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
    if (end) end("one");
    for (int i = 0; i < 3; i++) MPI_Bcast(one, 10, MPI_INT, 1, MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++) MPI_Allreduce(in, out, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) MPI_Gather(one, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 5; i++) MPI_Reduce(in, out, 1, MPI_DOUBLE, MPI_MAX, size - 1, back);
    for (int i = 0; i < 2; i++) MPI_Barrier(back);
    for (int i = 0; i < 3; i++) MPI_Barrier(MPI_COMM_SELF);
    MPI_Ibarrier(MPI_COMM_WORLD, request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (end) end("two");
    MPI_Comm_free(&back);
    if (rank == 0) printf("counted\n");
    MPI_Finalize();
    free(all);
    return 0;
}
