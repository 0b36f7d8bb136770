/* Work of all kinds, to see whether the clocks add up: computing, sleeping, messages, collectives, polling. Prints
 * "measured RANK SECONDS": the time between the end of MPI_Init and the begin of MPI_Finalize. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
int main(int argc, char **argv) {
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 20;
    MPI_Init(&argc, &argv);
    double start = now();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static char out[100000], in[100000];
    for (int round = 0; round < rounds; round++) {
        double end = now() + 1e-3 * ((rank * 7 + round * 3) % 8);
        while (now() < end) {}
        MPI_Sendrecv(out, round % 2 ? 100 : 100000, MPI_CHAR, (rank + 1) % size, 0, in, 100000, MPI_CHAR, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if ((rank + round) % 5 == 0) usleep(15000);
        MPI_Request request;
        int sum, done = 0;
        MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        for (int polls = 0; !done && polls < 50; polls++) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("measured %d %.9f\n", rank, now() - start);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
