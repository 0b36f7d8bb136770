/* MPI_THREAD_MULTIPLE where the library provides it: threads of a rank talk to their namesakes, each on its own tag. */
#include "t.h"
#include <pthread.h>
enum { T = 4, ROUNDS = 100 };
static void *work(void *arg) {
    long id = (long)arg;
    int next = (t_rank + 1) % t_size, prev = (t_rank + t_size - 1) % t_size;
    for (int i = 0; i < ROUNDS; i++) {
        int out = t_rank * 1000 + i, in = -1;
        MPI_Request q;
        MPI_Irecv(&in, 1, MPI_INT, prev, (int)id, MPI_COMM_WORLD, &q);
        MPI_Send(&out, 1, MPI_INT, next, (int)id, MPI_COMM_WORLD);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        EQ(in, prev * 1000 + i);
    }
    return NULL;
}
int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank), MPI_Comm_size(MPI_COMM_WORLD, &t_size);
    pthread_t threads[T];
    for (long i = 0; i < T; i++) {
        if (provided == MPI_THREAD_MULTIPLE) pthread_create(&threads[i], NULL, work, (void *)i);
        else work((void *)i);
    }
    for (int i = 0; i < T && provided == MPI_THREAD_MULTIPLE; i++) pthread_join(threads[i], NULL);
    say("threads done");
    return t_end();
}
