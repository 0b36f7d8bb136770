/* Ranks pass a turn round through a shared window: each waits for its number by spinning on memory, without calling MPI. Says whether that took milliseconds or seconds. */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 50 };

int main(int argc, char **argv)
{
    int rank, size, unit;
    MPI_Aint bytes;
    MPI_Win win;
    volatile int *turn;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&turn, &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, (void *)&turn);
    if (rank == 0)
        *turn = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int mine = rank; mine < ROUNDS * size; mine += size) {
        while (*turn != mine)
            ;
        *turn = mine + 1;
    }
    while (*turn < ROUNDS * size)
        ;
    double took = MPI_Wtime() - start;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s\n", took < 3.0 ? "soon" : "late");
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
