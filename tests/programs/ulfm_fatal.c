/* A rank dies, and the others, which handle no errors, need it. */
#include "ulfm.h"

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1)
        die();
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d went through a barrier with a dead rank\n", rank);
    MPI_Finalize();
    return 0;
}
