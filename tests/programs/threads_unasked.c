/* Threads in a program that called MPI_Init: one after the other, and two at a time, each with a communicator of its own. The standard does not allow the
 * latter; libraries do it all the same (PT-Scotch as Debian builds it), and most of the time it works elsewhere. threads_unasked [rounds] */
#include "t.h"
#include <pthread.h>
static void *gather(void *comm) {
    int *all = malloc(t_size * sizeof *all), mine = t_rank * 3 + 1;
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, *(MPI_Comm *)comm);
    for (int rank = 0; rank < t_size; rank++) EQ(all[rank], rank * 3 + 1);
    free(all);
    return NULL;
}
static void *ring(void *comm) {
    int in = -1, next = (t_rank + 1) % t_size, prev = (t_rank + t_size - 1) % t_size;
    MPI_Sendrecv(&t_rank, 1, MPI_INT, next, 9, &in, 1, MPI_INT, prev, 9, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
    EQ(in, prev);
    return gather(comm);
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    pthread_t other;
    MPI_Comm world = MPI_COMM_WORLD, copy;
    PART("another thread, alone");
    OK(!pthread_create(&other, NULL, ring, &world) && !pthread_join(other, NULL));
    ring(&world);
    PART("two at a time");
    for (int round = 0; round < rounds; round++) {
        MPI_Comm_dup(world, &copy);
        OK(!pthread_create(&other, NULL, round % 2 ? gather : ring, &copy));
        round % 3 ? gather(&world) : ring(&world);
        OK(!pthread_join(other, NULL));
        MPI_Comm_free(&copy);
    }
    return t_end();
}
