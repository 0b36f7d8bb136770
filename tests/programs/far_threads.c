/* Threads with a communicator each, collectives through cells. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int rank, size, bad;
static MPI_Comm comms[3];
static void *work(void *arg) {
    MPI_Comm c = comms[(long)arg];
    for (int i = 0; i < 300; i++) {
        int sum = 0, mine = rank + i;
        MPI_Barrier(c);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, c);
        if (sum != size * (size - 1) / 2 + i * size) bad++;
        sum = rank == i % size ? i : -1;
        MPI_Bcast(&sum, 1, MPI_INT, i % size, c);
        if (sum != i) bad++;
    }
    return NULL;
}
int main(int argc, char **argv) {
    int level, all;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf(all ? "%d wrong\n" : "all right\n", all);
    MPI_Finalize();
    return all != 0;
}
