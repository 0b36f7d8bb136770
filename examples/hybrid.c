/* MPI and OpenMP: how many threads each rank starts, and on how many CPUs they may run. cc's -fopenmp. */
#define _GNU_SOURCE
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, level, threads = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#pragma omp parallel reduction(+ : threads)
    threads += 1;
    cpu_set_t mask;
    sched_getaffinity(0, sizeof mask, &mask);
    printf("rank %d: %d threads on %d CPUs\n", rank, threads, CPU_COUNT(&mask));
    MPI_Finalize();
    return 0;
}
