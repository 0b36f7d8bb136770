/* Messages that compete, or do not: patterns PATTERN BYTES [ROUNDS]. All ranks begin together at time 0 of a simulation; what is measured is the longest of their times, in us.
 *   pingpong   ranks 0 and 1, half a round trip
 *   opposite   ranks 0 and 1, each to the other at once
 *   ring       each to the next one
 *   alltoall   each to all others at once
 *   stencil    each to its four neighbours in a square that is closed in both dimensions
 *   barrier    MPI_Barrier, of which the longest is told, too */
#include "bench.h"

enum { MOST = 4096 };

static int peers(const char *pattern, int rank, int size, int *to, int *from) {
    int count = 0, side = 1;
    if (!strcmp(pattern, "opposite") && rank < 2) {
        to[count] = from[count] = 1 - rank;
        count++;
    } else if (!strcmp(pattern, "ring")) {
        to[count] = (rank + 1) % size;
        from[count++] = (rank + size - 1) % size;
    } else if (!strcmp(pattern, "alltoall")) {
        for (int i = 1; i < size; i++) {
            to[count] = (rank + i) % size;
            from[count++] = (rank + size - i) % size;
        }
    } else if (!strcmp(pattern, "stencil")) {
        while ((side + 1) * (side + 1) <= size) side++;
        int x = rank % side, y = rank / side;
        if (rank >= side * side) return 0;
        int next[4][2] = {{(x + 1) % side, y}, {(x + side - 1) % side, y}, {x, (y + 1) % side}, {x, (y + side - 1) % side}};
        for (int i = 0; i < 4; i++) to[count] = from[count] = next[i][1] * side + next[i][0], count++;
    }
    return count;
}

static void pingpong(int rank, char *data, int bytes) {
    if (rank == 0) {
        MPI_Send(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    static int to[MOST], from[MOST];
    static MPI_Request requests[2 * MOST];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *pattern = argc > 1 ? argv[1] : "pingpong";
    int bytes = argc > 2 ? atoi(argv[2]) : 8, rounds = argc > 3 ? atoi(argv[3]) : 1;
    int is_pingpong = !strcmp(pattern, "pingpong"), is_barrier = !strcmp(pattern, "barrier");
    int count = size <= MOST ? peers(pattern, rank, size, to, from) : 0;
    char *data = calloc(1, (size_t)bytes * 2 + 2);
    if (is_pingpong) pingpong(rank, data, bytes);
    double begin = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        if (is_pingpong) {
            pingpong(rank, data, bytes);
        } else if (is_barrier) {
            MPI_Barrier(MPI_COMM_WORLD);
        } else {
            for (int i = 0; i < count; i++)
                MPI_Irecv(data + bytes + 1, bytes, MPI_CHAR, from[i], 0, MPI_COMM_WORLD, &requests[i]);
            for (int i = 0; i < count; i++)
                MPI_Isend(data, bytes, MPI_CHAR, to[i], 0, MPI_COMM_WORLD, &requests[count + i]);
            MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
        }
    }
    double own = (MPI_Wtime() - begin) * 1e6 / rounds / (is_pingpong ? 2 : 1), longest = own;
    if (rank != 0) MPI_Send(&own, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
    for (int i = 1; rank == 0 && i < size; i++) {
        MPI_Recv(&own, 1, MPI_DOUBLE, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (own > longest && !is_pingpong) longest = own;
    }
    if (rank == 0) printf("@ %s_%d %d %.6f\n", pattern, bytes, size, longest);
    free(data);
    MPI_Finalize();
    return 0;
}
