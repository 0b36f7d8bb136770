/* Rank 2 writes to address 0 while the others wait for it. */
#include <mpi.h>
#include <stddef.h>

static void fill(int *cells)
{
    *cells = 1;
}

int main(int argc, char **argv)
{
    int rank, cell;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fill(rank == 2 ? NULL : &cell);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
