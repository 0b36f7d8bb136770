/* starved [poll|nap]: four ranks, two of a core. Rank 1 computes for a second and calls no MPI meanwhile; what rank 0, of the same core, is to tell ranks 2 and 3
 * comes to them while they wait or, with poll, look for it all the time, or, with nap, after each 100 us of sleep. Rank 1 then says whether rank 2 heard of it in the first half of that second. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size, seen = 0, task = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(&task, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int to = 2; to < size; to++) MPI_Send(&task, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        double told;
        MPI_Send(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        double start = MPI_Wtime(), half = start + 0.5;
        while (MPI_Wtime() < start + 1.0) {}
        MPI_Recv(&told, 1, MPI_DOUBLE, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("told %s\n", told < half ? "in time" : "late");
    } else {
        while (argc > 1 && !seen) {
            MPI_Iprobe(0, 0, MPI_COMM_WORLD, &seen, MPI_STATUS_IGNORE);
            if (!seen && !strcmp(argv[1], "nap")) usleep(100);
        }
        MPI_Recv(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double now = MPI_Wtime();
        if (rank == 2) MPI_Send(&now, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
