/* What clocks say of a run's edges: sleeps before MPI_Init and after MPI_Finalize for so many milliseconds, between which all meet in barriers; or, with a
   second word, rank 0 ends the job after that time while all others wait. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms) {
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

int main(int argc, char **argv) {
    long ms = argc > 1 ? atol(argv[1]) : 100;
    const char *how = argc > 2 ? argv[2] : "";
    int rank;
    if (!*how) pause_ms(ms);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (*how && rank == 0) {
        pause_ms(ms);
        if (!strcmp(how, "kill")) raise(SIGKILL);
        if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 3);
        if (!strcmp(how, "exit")) _exit(3);
        pause_ms(100000); /* stay: somebody else ends it */
    }
    for (int i = 0; i < 20; i++) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    pause_ms(ms);
    return 0;
}
