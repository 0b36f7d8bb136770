/* A deadlock: rank 1 waits for a tag that rank 0 does not send, the others wait for rank 1 in a barrier. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, answer = 42;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        MPI_Send(&answer, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(&answer, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
