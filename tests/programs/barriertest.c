/* As in the muPi paper: a barrier and a millisecond of modelled work, again and again; prints what a barrier takes by MPI_Wtime. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int MPIX_Compute(double seconds) __attribute__((weak));

int main(int argc, char **argv)
{
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 10;
    double in = 0, most = 0, mine;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < rounds; i++) {
        if (MPIX_Compute)
            MPIX_Compute(1e-3);
        mine = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        mine = MPI_Wtime() - mine;
        in += mine;
        most = mine > most ? mine : most;
    }
    if (rank == 0)
        printf("%d ranks: barrier %.3f us in the mean, %.3f at most; %.9f s in all\n", size, in / rounds * 1e6, most * 1e6, MPI_Wtime());
    MPI_Finalize();
    return 0;
}
