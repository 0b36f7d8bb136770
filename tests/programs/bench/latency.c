/* What a message costs round a ring of all ranks, a barrier, and an allreduce of 8 bytes: microseconds. */
#include "bench.h"
static int rank, size;
static void ring(long laps) {
    long token = 0;
    for (long i = 0; i < laps; i++) {
        if (rank == 0) MPI_Send(&token, 1, MPI_LONG, (rank + 1) % size, 1, MPI_COMM_WORLD);
        MPI_Recv(&token, 1, MPI_LONG, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank) MPI_Send(&token, 1, MPI_LONG, (rank + 1) % size, 1, MPI_COMM_WORLD);
    }
}
static void barrier(long times) {
    for (long i = 0; i < times; i++) MPI_Barrier(MPI_COMM_WORLD);
}
static void allreduce(long times) {
    double a = rank, b = 0;
    for (long i = 0; i < times; i++) MPI_Allreduce(&a, &b, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (times && b != size * (size - 1.0) / 2) {
        fprintf(stderr, "rank %d: the sum of all ranks is %g\n", rank, b);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}
static void report(const char *figure, double us) {
    if (rank == 0) printf("@ %s %d %.4f\n", figure, size, us);
    fflush(stdout);
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pin_rank(rank);
    report("ring", measure(ring) / size);
    report("barrier", measure(barrier));
    report("allreduce", measure(allreduce));
    MPI_Finalize();
    return 0;
}
