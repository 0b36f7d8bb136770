/* A rank takes the last message first: thousands of eager ones wait for it meanwhile, more than a slab holds; then synchronous ones. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { COUNT = 3000, BYTES = 4000, SYNC = 50 };
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, bad = 0, all, last = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static int text[BYTES / sizeof(int)];
    const int n = BYTES / (int)sizeof(int);
    int to = (rank + size / 2) % size, from = (rank + size - size / 2) % size;
    MPI_Request *requests = malloc(SYNC * sizeof *requests), *sends = malloc((COUNT + 1) * sizeof *sends);
    int *data = malloc((size_t)COUNT * BYTES);
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < n; k++) data[i * n + k] = i * 31 + k + rank;
        MPI_Isend(data + i * n, n, MPI_INT, to, 1, MPI_COMM_WORLD, &sends[i]);
    }
    for (int i = 0; i < SYNC; i++) MPI_Issend(data + i * n, n, MPI_INT, to, 3, MPI_COMM_WORLD, &requests[i]);
    int note = 77 + rank;
    MPI_Isend(&note, 1, MPI_INT, to, 2, MPI_COMM_WORLD, &sends[COUNT]);
    MPI_Recv(&last, 1, MPI_INT, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    bad += last != 77 + from;
    for (int i = 0; i < COUNT + SYNC; i++) {
        MPI_Status status;
        int count, number = i < COUNT ? i : i - COUNT;
        MPI_Recv(text, n, MPI_INT, from, i < COUNT ? 1 : 3, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        for (int k = 0; k < n; k++) bad += text[k] != number * 31 + k + from;
        bad += count != n;
    }
    MPI_Waitall(SYNC, requests, MPI_STATUSES_IGNORE);
    MPI_Waitall(COUNT + 1, sends, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d wrong\n", all);
    MPI_Finalize();
    return all != 0;
}
