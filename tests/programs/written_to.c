/* Rank 2 has unexpected messages, comes back to MPI when a file appears, and looks through them for another one. written_to FILE. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, size, value = 7;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Some for the inbox to have been used, more than once round; three stay. */
    for (int i = 0; i < 600; i++) {
        if (rank == 1) MPI_Send(&i, 1, MPI_INT, 2, 1, MPI_COMM_WORLD);
        if (rank == 2) MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 3 && rank == 1; i++) MPI_Send(&i, 1, MPI_INT, 2, 7, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2) MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &value, MPI_STATUS_IGNORE);
    printf("ready %d %d\n", rank, (int)getpid());
    fflush(stdout);
    while (rank == 2 && access(argv[1], F_OK)) usleep(10000);
    if (rank == 2) MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (rank == 1 && access(argv[1], F_OK)) usleep(10000);
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, 2, 9, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank) printf("done\n");
    MPI_Finalize();
    return 0;
}
