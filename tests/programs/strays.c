/* strays: all ranks compute without MPI, the last one much shorter than the others, for whom it then waits. Rank 0 says whether each of those computed most
 * of the time with a CPU to itself, and whether each one's process-POV clock counts most of it: they may have lost their cores meanwhile. Each rank has a
 * second thread, which is to be on the same CPU in the end. */
#define _GNU_SOURCE
#include <mpi.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}
static void *sleeper(void *nothing) {
    for (;;) pause();
    return nothing;
}
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_t thread;
    pthread_create(&thread, NULL, sleeper, NULL);
    double (*rtime)(void) = (double (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Rtime");
    double cpu = rank == size - 1 ? 0.16 : 0.8, ran = rtime();
    double begin = seconds(CLOCK_MONOTONIC), end = seconds(CLOCK_THREAD_CPUTIME_ID) + cpu;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < end) {}
    double took = seconds(CLOCK_MONOTONIC) - begin;
    MPI_Barrier(MPI_COMM_WORLD);
    ran = rtime() - ran;
    double longest, least, counted = rank == size - 1 ? 1e9 : ran;
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&counted, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    /* Time to go home. */
    for (int i = 0; i < 20; i++) {
        usleep(1000);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    cpu_set_t mine, its;
    memset(&mine, 0, sizeof mine), memset(&its, 0, sizeof its);
    sched_getaffinity(0, sizeof mine, &mine);
    pthread_getaffinity_np(thread, sizeof its, &its);
    int apart = !CPU_EQUAL(&mine, &its), any;
    MPI_Reduce(&apart, &any, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        fprintf(stderr, "%.3f s of CPU took at most %.3f s, and at least %.3f s were with a core\n", cpu, longest, least);
        printf("%s, clock %s, threads %s\n", longest < 1.5 * cpu ? "alone" : "beside others", least > 0.7 * cpu ? "ran" : "stood",
               any ? "apart" : "together");
    }
    MPI_Finalize();
    return 0;
}
