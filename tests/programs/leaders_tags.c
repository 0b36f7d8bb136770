/* The leaders of two groups give MPI_Intercomm_create different tags, and so wait for each other. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Comm both;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, rank == 0 ? 8 : 7, &both);
    MPI_Finalize();
    return 0;
}
