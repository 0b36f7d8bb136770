/* Ends after it has printed a line: said abort | segv | sigabrt | _exit | close | leave (without MPI_Finalize) | busy, wait (rank 0
 * leaves so, and the others compute, or wait, for ever); "own": with an output buffer of its own. */
#include <mpi.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static char mine[1 << 16];
    const char *how = argc > 1 ? argv[1] : "";
    int rank, own = !strcmp(how, "own");
    if (own) setvbuf(stdout, mine, _IOFBF, sizeof mine);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (own && !rank) puts(__flbf(stdout) || __fbufsize(stdout) != sizeof mine ? "its own buffer is gone" : "its own buffer stays");
    if (!strcmp(how, "leave")) {
        MPI_Barrier(MPI_COMM_WORLD);
        printf("rank %d has come to the end\n", rank);
        return 0;
    }
    if (!own) printf("rank %d has come to the end\n", rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
    if ((!strcmp(how, "busy") || !strcmp(how, "wait")) && !rank) return 0;
    if (!strcmp(how, "busy")) for (volatile unsigned long x = 0;; x++) {}
    if (!strcmp(how, "wait")) MPI_Recv(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(how, "segv")) *(volatile int *)0 = 1;
    if (!strcmp(how, "sigabrt")) abort();
    if (!strcmp(how, "close")) close(1);
    MPI_Finalize();
    if (!strcmp(how, "_exit")) _exit(0);
    return 0;
}
