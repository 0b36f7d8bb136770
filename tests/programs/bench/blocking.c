/* blocking ITERS COMP_US BYTES...: the ping-pong of figures 2 and 4 of the COMMMAMA paper (HPCC 2020). Rank 0 sends, computes COMP_US, writes a byte of the
 * buffer, receives, computes COMP_US, and reads one; rank 1 receives first. Of more ranks than two the first half plays with the second, each with its counterpart,
 * and a rank computes its part of COMP_US, so that the same is done whatever their number. COMP_US 0: nothing is computed. ITERS round trips of each size, or
 * as many as take a second. Microseconds of one:  @ round BYTES US */
#include "bench.h"
#include <stdint.h>
static int rank, size, half;
static long turns;

static double compute(long count) {
    double x = 1 + rank;
    for (long i = 0; i < count; i++) x = x * 0.999999 + 1e-6;
    return x;
}

static volatile double sink;

static double play(char *buffer, int bytes, int count) {
    int first = rank < half, other = first ? rank + half : rank - half;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (int i = 0; i < count; i++) {
        for (int turn = 0; turn < 2; turn++) {
            if ((turn == 0) == first) {
                MPI_Send(buffer, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
                sink = compute(turns);
                *(volatile char *)buffer = (char)i;
            } else {
                MPI_Recv(buffer, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                sink = compute(turns);
                sink = *(volatile char *)(buffer + bytes / 2);
            }
        }
    }
    /* From the first one's begin to the last one's end: ranks of a core may play one after the other. All of them are on one machine, whose clock this is. */
    double mine[2] = {-start, now_us()}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (all[0] + all[1]) / count;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size % 2 || argc < 4) {
        if (rank == 0) fprintf(stderr, "blocking ITERS COMP_US BYTES... needs an even number of ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    half = size / 2;
    double wanted = atof(argv[2]) / half;
    int iterations = atoi(argv[1]);
    if (wanted > 0) {
        /* By the time that the fastest of many takes. */
        turns = 10000;
        for (int i = 0; i < 12; i++) {
            double best = 1e9;
            for (int k = 0; k < 5; k++) {
                double start = now_us(), took = (sink = compute(turns), now_us() - start);
                best = took < best ? took : best;
            }
            double factor = wanted / best;
            turns = (long)(turns * (factor > 8 ? 8 : factor)) + 1;
        }
        MPI_Bcast(&turns, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    }
    for (int a = 3; a < argc; a++) {
        int bytes = atoi(argv[a]) / half;
        char *buffer = malloc(bytes);
        memset(buffer, 1, bytes);
        play(buffer, bytes, 2);
        double once = play(buffer, bytes, 1);
        int count = (int)(1e6 / once) + 1;
        count = count < iterations ? count : iterations;
        MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
        double us = play(buffer, bytes, count < 3 ? 3 : count);
        if (rank == 0) printf("@ round %s %.2f\n", argv[a], us);
        fflush(stdout);
        free(buffer);
    }
    MPI_Finalize();
    return 0;
}
