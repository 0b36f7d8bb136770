/* Parts of a program by name, for reports and traces. Weak, so that it runs with MPIs, too, that do not have them. */
#include <mpi.h>
#include <stdio.h>

int MPIX_Region_begin(const char *name) __attribute__((weak));
int MPIX_Region_end(const char *name) __attribute__((weak));

static void begin(const char *name)
{
    if (MPIX_Region_begin)
        MPIX_Region_begin(name);
}

static void end(const char *name)
{
    if (MPIX_Region_end)
        MPIX_Region_end(name);
}

int main(int argc, char **argv)
{
    int rank;
    volatile double x = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 10; step++) {
        begin("compute");
        for (int i = 0; i < 200000 * (rank + 1); i++)
            x = x * 0.999 + 1;
        end("compute");
        begin("exchange");
        MPI_Barrier(MPI_COMM_WORLD);
        end("exchange");
    }
    if (rank == 0)
        printf("regions: done\n");
    MPI_Finalize();
    return 0;
}
