/* Ways to end badly, and states to be killed in. deaths HOW [rank]; HOW: exit3 | nofinalize | segv | abort7 | fatal |
 * compute | recv | lock | accumulate | init | finalized | after. Prints "ready" from each rank that has come so far. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "exit3";
    int rank = -1, size, victim = argc > 2 ? atoi(argv[2]) : 0, v = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!strcmp(how, "init")) {
        /* All but the victim wait in MPI_Init; the victim, known by its environment, never comes. */
        const char *r = getenv("VMPI_RANK") ? getenv("VMPI_RANK") : getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
        printf("ready %s %d\n", r ? r : "?", (int)getpid());
        if (r && atoi(r) == victim) for (;;) pause();
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(how, "finalized")) printf("ready %d %d\n", rank, (int)getpid());
    if (!strcmp(how, "exit3") && rank == victim) exit(3);
    if (!strcmp(how, "nofinalize") && rank == victim) _exit(0);
    if (!strcmp(how, "segv") && rank == victim) raise(SIGSEGV);
    if (!strcmp(how, "abort7") && rank == victim) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(how, "fatal") && rank == victim) MPI_Send(&v, 1, MPI_INT, size + 9, 0, MPI_COMM_WORLD);
    if (!strcmp(how, "compute")) for (volatile unsigned long x = 0;; x++) {}
    if (!strcmp(how, "recv")) MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(how, "lock") || !strcmp(how, "accumulate")) {
        /* Rank 2 holds a lock that the others wait for; or all accumulate without end. */
        static double x[20000];
        double *base;
        MPI_Win win;
        MPI_Win_allocate(sizeof x, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        if (!strcmp(how, "lock")) {
            if (rank == 2) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 2) for (;;) pause();
            MPI_Win_lock(rank % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
        }
        MPI_Win_lock_all(0, win);
        for (;;) MPI_Accumulate(x, 20000, MPI_DOUBLE, 0, 0, 20000, MPI_DOUBLE, MPI_SUM, win);
    }
    if (!strcmp(how, "finalized") || !strcmp(how, "after")) {
        MPI_Finalize();
        printf("ready %d %d\n", rank, (int)getpid());
        if (!strcmp(how, "finalized")) for (;;) pause();
        return 0;
    }
    MPI_Barrier(MPI_COMM_WORLD); /* the others wait for the one that died */
    MPI_Finalize();
    return 0;
}
