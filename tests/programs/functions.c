/* functions coarse|fine GROUPS BYTES TIMES: every group sends a large message to every other, and computes meanwhile (FG-MPI, Kamal and Wagner 2014, section 4).
 * coarse: a rank per group, MPI_Isend and MPI_Irecv of all, MPI_Waitany between pieces of the computation. fine: GROUPS + 1 ranks per group, a function each: one that
 * sends to all others, one for each of those that it receives from, one that computes. All contents are checked; seconds for TIMES rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 20 };

static int groups, bytes;
static double sum;

static void compute(void) {
    volatile double x = 0;
    for (int i = 0; i < 20000; i++) x += i;
    sum += x;
}

static void fill(char *buffer, int from, int time) {
    for (int i = 0; i < bytes; i++) buffer[i] = (char)(from * 7 + time * 3 + i);
}

static void check(const char *buffer, int from, int time) {
    for (int i = 0; i < bytes; i++)
        if (buffer[i] != (char)(from * 7 + time * 3 + i)) {
            fprintf(stderr, "byte %d of the message of group %d in round %d is wrong\n", i, from, time);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
}

static void coarse(int me, int times) {
    char *out = malloc(bytes), *in = malloc((size_t)groups * bytes);
    MPI_Request *requests = malloc(2 * groups * sizeof *requests);
    for (int time = 0; time < times; time++) {
        int n = 0, pieces = 0;
        fill(out, me, time);
        for (int other = 0; other < groups; other++)
            if (other != me) MPI_Irecv(in + (size_t)other * bytes, bytes, MPI_BYTE, other, time, MPI_COMM_WORLD, &requests[n++]);
        for (int other = 0; other < groups; other++)
            if (other != me) MPI_Isend(out, bytes, MPI_BYTE, other, time, MPI_COMM_WORLD, &requests[n++]);
        for (int done = 0; done < n; done++) {
            int which;
            if (pieces < PIECES) compute(), pieces++;
            MPI_Waitany(n, requests, &which, MPI_STATUS_IGNORE);
        }
        while (pieces++ < PIECES) compute();
        for (int other = 0; other < groups; other++)
            if (other != me) check(in + (size_t)other * bytes, other, time);
    }
    free(out), free(in), free(requests);
}

static void fine(int rank, int times) {
    int group = rank / (groups + 1), role = rank % (groups + 1);
    char *buffer = malloc(bytes);
    for (int time = 0; time < times; time++) {
        if (role == 0) {
            fill(buffer, group, time);
            for (int other = 0; other < groups; other++)
                if (other != group) {
                    int receiver = other * (groups + 1) + 1 + (group < other ? group : group - 1);
                    MPI_Send(buffer, bytes, MPI_BYTE, receiver, time, MPI_COMM_WORLD);
                }
        } else if (role < groups) {
            int from = role - 1 < group ? role - 1 : role;
            MPI_Recv(buffer, bytes, MPI_BYTE, from * (groups + 1), time, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(buffer, from, time);
        } else {
            for (int piece = 0; piece < PIECES; piece++) compute();
        }
    }
    free(buffer);
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    groups = argc > 2 ? atoi(argv[2]) : 0, bytes = argc > 3 ? atoi(argv[3]) : 0;
    int is_fine = argc > 1 && strcmp(argv[1], "fine") == 0, times = argc > 4 ? atoi(argv[4]) : 0;
    if (times < 1 || bytes < 1 || size != (is_fine ? groups * (groups + 1) : groups)) {
        if (rank == 0) fprintf(stderr, "functions coarse|fine GROUPS BYTES TIMES, on GROUPS or GROUPS * (GROUPS + 1) ranks, not %d\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (is_fine) fine(rank, times);
    else coarse(rank, times);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("@ functions_%s %d %.4f\n", argv[1], groups, MPI_Wtime() - start);
    MPI_Finalize();
    return 0;
}
