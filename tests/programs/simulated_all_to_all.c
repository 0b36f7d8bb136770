/* All ranks send to all others at once: many messages share links. Prints when the last one had what it was sent, in virtual nanoseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { INTS = 256 };

int main(int argc, char **argv) {
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *in = malloc(sizeof(int) * INTS * size), *out = malloc(sizeof(int) * INTS * size);
    MPI_Request *requests = malloc(sizeof(MPI_Request) * 2 * size);
    for (int i = 0; i < INTS * size; i++) out[i] = rank * 1000 + i / INTS;
    for (int other = 0; other < size; other++) {
        MPI_Irecv(in + INTS * other, INTS, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[other]);
        MPI_Isend(out + INTS * other, INTS, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[size + other]);
    }
    MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    double mine = MPI_Wtime(), last;
    for (int i = 0; i < INTS * size; i++) wrong += in[i] != i / INTS * 1000 + rank;
    MPI_Allreduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d wrong, %.0f ns\n", wrong, last * 1e9);
    MPI_Finalize();
    return 0;
}
