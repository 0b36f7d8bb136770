/* Listing 1 of the EuroMPI'20 paper: what MPI_Wtime (and MPIX_Rtime, where the library has it) tells about work between
 * two points with a barrier. listing1 busy|sleep [milliseconds]. Prints raw values with --raw, else what must hold anywhere. */
#define _GNU_SOURCE
#include "t.h"
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>
static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int busy = argc < 2 || strcmp(argv[1], "sleep") != 0;
    double seconds = (argc > 2 ? atoi(argv[2]) : 300) / 1000.0;
    int raw = argc > 3 && !strcmp(argv[3], "--raw");
    double (*rtime)(void) = (double (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Rtime");
    double start = MPI_Wtime(), rstart = rtime ? rtime() : 0;
    if (busy) {
        double end = cpu() + seconds;
        while (cpu() < end) {}
    } else
        usleep((useconds_t)(seconds * 1e6));
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed = MPI_Wtime() - start, relapsed = rtime ? rtime() - rstart : 0;
    OK(elapsed >= seconds * 0.99);
    if (rtime && !getenv("VMPI_TEST_NO_RTIME")) {
        /* The process-POV clock counts the work, and not the periods in which other ranks had the core. */
        if (busy) OK(relapsed >= seconds * 0.9);
        OK(relapsed <= elapsed * 1.01 + 0.001);
    }
    if (raw) say("wtime %.3f rtime %.3f%s", elapsed, relapsed, rtime ? "" : " (the library has no MPIX_Rtime)");
    else say("%s %.1f s", busy ? "busy" : "sleep", seconds);
    return t_end();
}
