/* One figure per line: WHAT MICROSECONDS. Each is the best-settled batch mean: batches double until one takes 100 ms. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>
static int rank, size;
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}
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
    double a = rank, b;
    for (long i = 0; i < times; i++) MPI_Allreduce(&a, &b, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void measure(const char *what, void (*work)(long), int per) {
    double us = 0;
    long times = 1;
    work(1);
    for (;;) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        work(times);
        us = now() - start;
        int again = us < 100e3;
        MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!again) break;
        times *= 2;
    }
    if (rank == 0) printf("%s %.4f\n", what, us / times / per);
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    measure("ring hop 8 B", ring, size);
    measure("barrier", barrier, 1);
    measure("allreduce 8 B", allreduce, 1);
    MPI_Finalize();
    return 0;
}
