/* Time that passes, this rank's own time, and its core's, in a part of the program. */
#include <mpi.h>
#include <stdio.h>
#include <vmpi.h>

int main(int argc, char **argv)
{
    int rank;
    volatile double x = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double wall = MPI_Wtime(), own = MPIX_Rtime();
    for (int part = 0; part < 10; part++) {
        for (int i = 0; i < 500000; i++)
            x = x * 0.999 + 1;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    wall = MPI_Wtime() - wall;
    own = MPIX_Rtime() - own;
    printf("rank %d: the loop took %.3f s, of which this rank computed %.3f s\n", rank, wall, own);
    MPI_Finalize();
    return 0;
}
