/* What a message costs round a ring of all ranks, a barrier, an allreduce of 8 bytes, and an exchange of 8 bytes with four neighbours: microseconds. */
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
/* With the next two ranks on either side: what codes on grids do between their steps. */
static void exchange(long times) {
    static const int distance[4] = {1, -1, 2, -2};
    long out[4], in[4];
    MPI_Request requests[8];
    for (long i = 0; i < times; i++) {
        for (int k = 0; k < 4; k++)
            MPI_Irecv(&in[k], 1, MPI_LONG, (rank - distance[k] + 2 * size) % size, k, MPI_COMM_WORLD, &requests[k]);
        for (int k = 0; k < 4; k++) {
            out[k] = 4L * rank + k;
            MPI_Isend(&out[k], 1, MPI_LONG, (rank + distance[k] + 2 * size) % size, k, MPI_COMM_WORLD, &requests[4 + k]);
        }
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    }
    for (int k = 0; times && k < 4; k++)
        if (in[k] != 4L * ((rank - distance[k] + 2 * size) % size) + k) {
            fprintf(stderr, "rank %d: message %d brought %ld\n", rank, k, in[k]);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pin_rank(rank);
    report("ring", measure(ring) / size);
    report("barrier", measure(barrier));
    report("allreduce", measure(allreduce));
    report("exchange", measure(exchange));
    MPI_Finalize();
    return 0;
}
