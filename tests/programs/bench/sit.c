/* All ranks wait in MPI for ever: for what that uses of CPU and memory. Ended by a signal. */
#include "bench.h"
int main(int argc, char **argv) {
    int rank, size, never;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("! sitting\n");
        fflush(stdout);
    }
    MPI_Recv(&never, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
