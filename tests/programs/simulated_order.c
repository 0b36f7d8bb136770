/* Who comes first, and when, where that depends on time alone: each rank prints what it has seen. The same in each run of a simulation. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C"
#endif
int MPIX_Compute(double seconds) __attribute__((weak));

static int rank, size;
static char out[1 << 16];
static size_t used;
static unsigned long long state;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % below;
}

static void note(const char *what, int source, int tag)
{
    used += snprintf(out + used, sizeof out - used, "[%d] %s %d %d at %.12f\n", rank, what, source, tag, MPI_Wtime());
}

static void work(void)
{
    if (MPIX_Compute)
        MPIX_Compute(draw(4) * 2.5e-6);
}

/* All send to all, in random order; whoever comes is taken. */
static void anybody(int rounds, int bytes)
{
    char *in = malloc(bytes + 1), *data = calloc(1, bytes + 1);
    MPI_Request *requests = malloc(sizeof *requests * rounds);
    MPI_Status status;
    for (int i = 0; i < rounds; i++) {
        work();
        MPI_Isend(data, bytes, MPI_BYTE, (rank + 1 + i) % size, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < rounds; i++) {
        work();
        MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        note("received", status.MPI_SOURCE, status.MPI_TAG);
    }
    MPI_Waitall(rounds, requests, MPI_STATUSES_IGNORE);
    note("sent", -1, rounds);
    /* What comes next would fit any receive of this. */
    MPI_Barrier(MPI_COMM_WORLD);
    free(in), free(data), free(requests);
}

/* Probes and tests, which miss for a while. */
static void polls(int rounds)
{
    int flag, data = rank, in;
    MPI_Status status;
    MPI_Request sends[16], receives[16];
    int indices[16], count, left = rounds, buffers[16];
    for (int i = 0; i < rounds; i++) {
        work();
        MPI_Isend(&data, 1, MPI_INT, (rank + size - 1) % size, 100 + i, MPI_COMM_WORLD, &sends[i]);
        int misses = 0;
        do {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
            misses += !flag;
        } while (!flag);
        note("probed", status.MPI_SOURCE, misses);
        MPI_Recv(&in, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(rounds, sends, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < rounds; i++)
        MPI_Irecv(&buffers[i], 1, MPI_INT, MPI_ANY_SOURCE, 200 + i, MPI_COMM_WORLD, &receives[i]);
    for (int i = 0; i < rounds; i++) {
        work();
        MPI_Issend(&data, 1, MPI_INT, (rank + i) % size, 200 + i, MPI_COMM_WORLD, &sends[i]);
    }
    while (left > 0) {
        MPI_Waitsome(rounds, receives, &count, indices, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; i++)
            note("some", buffers[indices[i]], indices[i]);
        left -= count;
    }
    int misses = 0;
    do {
        MPI_Testall(rounds, sends, &flag, MPI_STATUSES_IGNORE);
        misses += !flag;
    } while (!flag);
    note("tested", -1, misses);
}

/* Collectives under way while other messages come. */
static void beside(void)
{
    int sum = 0, in, flag = 0;
    MPI_Request all, barrier, receive;
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &all);
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    work();
    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 300, MPI_COMM_WORLD, &receive);
    MPI_Send(&rank, 1, MPI_INT, (rank + 3) % size, 300, MPI_COMM_WORLD);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    note("beside", in, 0);
    while (!flag) {
        work();
        MPI_Test(&all, &flag, MPI_STATUS_IGNORE);
    }
    note("sum", sum, 0);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    note("barrier", -1, 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = 0x9e3779b97f4a7c15ULL * (rank + 1);
    note("begin", -1, 0);
    anybody(12, 8);
    anybody(6, 5000);
    anybody(4, 100000);
    polls(8);
    beside();
    MPI_Barrier(MPI_COMM_WORLD);
    note("end", -1, 0);
    fputs(out, stdout);
    MPI_Finalize();
    return 0;
}
