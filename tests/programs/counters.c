/* Rank r touches 1000 + 1000 r pages for the first time, in pieces between which others run; then what vmpi's counters say of that is looked at, if
 * vmpirun was told to count: process-POV at once, core-POV for what was touched in a metered section. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int (*rcounter)(const char *, long long *) = (int (*)(const char *, long long *))dlsym(RTLD_DEFAULT, "MPIX_Rcounter");
    int (*pcounter)(const char *, long long *) = (int (*)(const char *, long long *))dlsym(RTLD_DEFAULT, "MPIX_Pcounter");
    int (*start)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Start_processor_timer");
    int (*stop)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Stop_processor_timer");
    if (!rcounter || !pcounter || !start || !stop) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    long pages = 1000 + 1000 * rank;
    char *memory = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 4);
    madvise(memory, pages * 4096, MADV_NOHUGEPAGE);
    long long before = 0, after = 0, metered = 0, unknown = 0;
    int counted = rcounter("page-faults", &before) == MPI_SUCCESS;
    if (rcounter("no-such-event", &unknown) == MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 5);
    start();
    for (long page = 0; page < pages; page++) {
        memory[page * 4096] = 1;
        if (page % 200 == 0) MPI_Barrier(MPI_COMM_SELF);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    stop();
    if (counted) {
        if (rcounter("page-faults", &after) != MPI_SUCCESS || pcounter("page-faults", &metered) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 6);
        if (after - before < pages || after - before > pages + 500) {
            printf("rank %d: %lld faults for %ld pages\n", rank, after - before, pages);
            MPI_Abort(MPI_COMM_WORLD, 7);
        }
        /* All ranks of the core, of which this is one. */
        if (metered < pages) {
            printf("rank %d: %lld faults in metered sections of its core\n", rank, metered);
            MPI_Abort(MPI_COMM_WORLD, 8);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("counters hold\n");
    MPI_Finalize();
    return 0;
}
