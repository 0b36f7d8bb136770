/* moved STEPS: uneven work whose weight changes place, so that ranks move between cores: first the first rank has most, then the last. All of it is in
 * a section of the core-POV timer. Each rank prints "rank R metered SECONDS ptime SECONDS": its own time in the section (MPIX_Rtime), and
 * what its core's timer says at the end, when all sections are over. */
#include <mpi.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static double (*rtime)(void), (*ptime)(void);
/* Work, not time: a rank that is kept from its core does as much. */
static void work(int units) {
    static volatile double x = 1;
    for (int i = 0; i < units * 50000; i++) x = x * 1.0000001 + 1e-9;
}
int main(int argc, char **argv) {
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 600;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rtime = (double (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Rtime");
    ptime = (double (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Ptime");
    void (*begin)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Start_processor_timer");
    void (*end)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Stop_processor_timer");
    MPI_Barrier(MPI_COMM_WORLD);
    begin();
    double start = rtime();
    for (int step = 0; step < steps; step++) {
        int heavy = step < steps / 2 ? 0 : size - 1, left = (rank + size - 1) % size, right = (rank + 1) % size, in;
        work(rank == heavy ? 3 : 1);
        MPI_Sendrecv(&step, 1, MPI_INT, right, 0, &in, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (in != step) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    double metered = rtime() - start;
    end();
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d metered %.9f ptime %.9f\n", rank, metered, ptime());
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
