/* Which CPUs each rank may use, and what OpenMP is told; and that no two ranks are between two barriers of their place at once is for the test's own looks. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *told(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "-";
}

int main(int argc, char **argv)
{
    int rank, size;
    cpu_set_t set;
    char line[256] = "", all[256 * 16];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sched_getaffinity(0, sizeof set, &set);
    snprintf(line, sizeof line, "rank %d: CPUs", rank);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            snprintf(line + strlen(line), sizeof line - strlen(line), " %d", cpu);
    snprintf(line + strlen(line), sizeof line - strlen(line), ", threads %s, places %s, waits %s", told("OMP_NUM_THREADS"), told("OMP_PLACES"),
             told("OMP_WAIT_POLICY"));
    MPI_Gather(line, sizeof line, MPI_CHAR, all, sizeof line, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size; i++)
        puts(all + i * sizeof line);
    MPI_Finalize();
    return 0;
}
