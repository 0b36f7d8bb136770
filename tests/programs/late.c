/* Rank 0 sends late, the others wait for it, in a function of its own. late MS */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_it(void) {
    int value;
    MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* here */
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank) wait_for_it();
    else usleep(1000 * atoi(argv[1]));
    for (int to = 1; to < size && !rank; to++) MPI_Send(&to, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
