/* What messages take in virtual time, to the picosecond: the first and the last rank, which sit on different hosts, and the first two, which share one. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static char *buffer;

static long long picoseconds(double from, double to) { return (long long)((to - from) * 1e12 + 0.5); }

/* Half a round trip, and the time of each end by its own clock. */
static void ping_pong(int rank, int a, int b, int bytes)
{
    double from, to;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != a && rank != b)
        return;
    /* The barrier leaves ranks at different times. */
    for (int round = 0; round < 2; round++) {
        from = MPI_Wtime();
        if (rank == a) {
            MPI_Send(buffer, bytes, MPI_BYTE, b, 1, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_BYTE, b, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, bytes, MPI_BYTE, a, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_BYTE, a, 2, MPI_COMM_WORLD);
        }
        to = MPI_Wtime();
    }
    if (rank == a)
        printf("half %d %d %d %lld\n", a, b, bytes, picoseconds(from, to) / 2);
}

/* k sends at once: the interface lets them out one after the other. */
static void burst(int rank, int last, int count)
{
    MPI_Request requests[64];
    double from, to;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == last) {
        MPI_Send(buffer, 0, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            MPI_Recv(buffer, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Recv(buffer, 0, MPI_BYTE, last, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        from = MPI_Wtime();
        for (int i = 0; i < count; i++)
            MPI_Isend(buffer, 0, MPI_BYTE, last, 3, MPI_COMM_WORLD, &requests[i]);
        to = MPI_Wtime();
        printf("sending %d %lld\n", count, picoseconds(from, to));
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        MPI_Recv(buffer, 0, MPI_BYTE, last, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("burst %d %lld\n", count, picoseconds(from, MPI_Wtime()));
    }
}

int main(int argc, char **argv)
{
    int rank, size, sizes[] = {0, 1, 128, 129, 1000, 8192, 8193, 100000, 1 << 20};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    buffer = calloc(1, 1 << 20);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        ping_pong(rank, 0, size - 1, sizes[i]);
    ping_pong(rank, 0, 1, 0);
    ping_pong(rank, 0, 1, 4096);
    burst(rank, size - 1, 10);
    MPI_Finalize();
    return 0;
}
