/* What a trace is to show: traced ROUNDS WORK. In each round every rank works (ranks with odd numbers twice as long), sends 100 bytes to its right neighbour with
 * the round's tag, and takes the left one's; every tenth round there is a barrier. Rank 0 also sleeps outside MPI once. Prints "traced" at the end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100, work = argc > 2 ? atoi(argv[2]) : 10000, rank, size;
    char from[100], to[100] = {0};
    volatile double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < work * (1 + rank % 2); i++) sum += i;
        MPI_Request send;
        MPI_Isend(to, 100, MPI_BYTE, right, round % 30000, MPI_COMM_WORLD, &send);
        MPI_Recv(from, 100, MPI_BYTE, left, round % 30000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        if (round % 10 == 9) MPI_Barrier(MPI_COMM_WORLD);
        if (round == rounds / 2 && rank == 0) usleep(60000);
    }
    if (rank == 0) printf("traced\n");
    MPI_Finalize();
    return 0;
}
