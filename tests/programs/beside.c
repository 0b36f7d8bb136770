/* The CPU of a job of one rank that lasts for two seconds. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    cpu_set_t set;
    int cpu = 0;
    MPI_Init(&argc, &argv);
    sched_getaffinity(0, sizeof set, &set);
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    printf("%d\n", cpu);
    sleep(2);
    MPI_Finalize();
    return 0;
}
