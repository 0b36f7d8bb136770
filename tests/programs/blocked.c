/* A job in which nothing will ever happen: each rank waits in another way. blocked [outside]: with "outside" rank 0 waits
 * outside MPI. Prints "ready RANK PID" before. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
enum { LARGE = 1 << 20 };
static char large[LARGE], in[6][64];
int main(int argc, char **argv) {
    int rank, size, v = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("ready %d %d\n", rank, (int)getpid());
    fflush(stdout);
    if (rank == 0 && argc > 1 && !strcmp(argv[1], "outside"))
        for (;;) pause();
    MPI_Request requests[6], barrier;
    int index;
    switch (rank % 7) {
    case 0: MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE); break;
    case 1: MPI_Barrier(MPI_COMM_WORLD); break;
    case 2: MPI_Ssend(&v, 1, MPI_INT, 0, 1, MPI_COMM_WORLD); break;
    case 3: MPI_Send(large, LARGE, MPI_CHAR, 0, 2, MPI_COMM_WORLD); break;
    case 4: MPI_Probe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE); break;
    case 5:
        for (int i = 0; i < 6; i++) MPI_Irecv(in[i], 64, MPI_CHAR, i % size, 98, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitany(6, requests, &index, MPI_STATUS_IGNORE);
        break;
    case 6:
        MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
        break;
    }
    printf("rank %d did not wait\n", rank);
    MPI_Finalize();
    return 1;
}
