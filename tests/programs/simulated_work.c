/* Ranks compute, for real, between messages around a ring; rank 0 prints its clock after each round, and what the work took by its own clock. An argument "polls": they
   poll for what comes. "other": another call in the fourth round. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static double work(int steps)
{
    volatile double x = 1;
    for (int i = 0; i < steps; i++)
        x = x * 1.0000001 + 1e-9;
    return x;
}

int main(int argc, char **argv)
{
    int rank, size, in, polls = argc > 1 && !strcmp(argv[1], "polls"), other = argc > 1 && !strcmp(argv[1], "other");
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 6; round++) {
        MPI_Request request;
        double begun = MPI_Wtime();
        sum += work(20000 * (1 + (rank + round) % 3));
        double worked = MPI_Wtime() - begun;
        MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, round, MPI_COMM_WORLD, &request);
        MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, round, MPI_COMM_WORLD);
        if (other && round == 3)
            MPI_Barrier(MPI_COMM_WORLD);
        if (polls)
            for (int done = 0; !done;) {
                sum += work(500);
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            }
        else
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == 0)
            printf("%d %.12f %.12f\n", round, worked, MPI_Wtime());
    }
    MPI_Finalize();
    return sum < 0;
}
