/* pingpong FIGURE BYTES...: half the round trip between two ranks, microseconds, and GB/s. */
#include "bench.h"
static int rank, bytes;
static char *out, *in;
static void pingpong(long times) {
    for (long i = 0; i < times; i++)
        if (rank == 0) {
            MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || argc < 3) {
        if (rank == 0) fprintf(stderr, "pingpong FIGURE BYTES... needs two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    pin_rank(rank);
    for (int i = 2; i < argc; i++) {
        bytes = atoi(argv[i]);
        out = malloc(bytes), in = malloc(bytes);
        memset(out, 1 + rank, bytes);
        memset(in, 0, bytes);
        double us = measure(pingpong) / 2;
        if (in[0] != 2 - rank || in[bytes - 1] != 2 - rank) {
            fprintf(stderr, "rank %d: %d bytes came wrong\n", rank, bytes);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        if (rank == 0) {
            printf("@ %s %d %.4f\n", argv[1], bytes, us);
            if (bytes >= 4096) printf("@ %s_bandwidth %d %.4f\n", argv[1], bytes, bytes / us / 1e3);
            fflush(stdout);
        }
        free(out), free(in);
    }
    MPI_Finalize();
    return 0;
}
