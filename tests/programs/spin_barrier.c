/* Threads of a rank meet in a barrier that spins on memory, while one of them exchanges a number with each other rank. Says whether that took long. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 5, MOST = 16 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int left[2];
static int rank, size, phase, wrong;

static void meet(void)
{
    pthread_mutex_lock(&lock);
    volatile int *here = &left[phase];
    if (--*here == 0) {
        phase = !phase;
        left[phase] = size;
    }
    pthread_mutex_unlock(&lock);
    while (*here > 0)
        ;
}

static void *exchange(void *peer_of)
{
    int peer = (int)(long)peer_of;
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        if (peer != rank) {
            int in = -1, out = round;
            MPI_Sendrecv(&out, 1, MPI_INT, peer, 0, &in, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (in != round)
                wrong = 1;
        }
        meet();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int level;
    pthread_t threads[MOST];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (level != MPI_THREAD_MULTIPLE || size > MOST)
        MPI_Abort(MPI_COMM_WORLD, 2);
    left[0] = size;
    double start = MPI_Wtime();
    for (long peer = 0; peer < size; peer++)
        pthread_create(&threads[peer], NULL, exchange, (void *)peer);
    for (int peer = 0; peer < size; peer++)
        pthread_join(threads[peer], NULL);
    int any = 0;
    MPI_Reduce(&wrong, &any, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s, %s\n", any ? "wrong" : "right", MPI_Wtime() - start < 30.0 ? "soon" : "late");
    MPI_Finalize();
    return 0;
}
