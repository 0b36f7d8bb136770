/* Rank 0 computes in three threads for three seconds, and the others wait for it in MPI. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void *compute(void *nothing)
{
    volatile double sum = 0;
    for (double end = now() + 3; now() < end;)
        for (int i = 0; i < 100000; i++)
            sum += i;
    return nothing;
}

int main(int argc, char **argv)
{
    int rank, level;
    pthread_t threads[2];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, compute, NULL);
        compute(NULL);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("done");
    MPI_Finalize();
    return 0;
}
