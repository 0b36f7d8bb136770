/* Started by another MPI's launcher: each process is the rank that the launcher says it is. foreign HOW [rank]; HOW: ok | stdin | exit | abort | segv | wait |
 * nodes (half of the ranks on each of two). */
#include "t.h"
#include <signal.h>
#include <unistd.h>
static const char *outer(void) {
    static const char *names[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"};
    for (int i = 0; i < 3; i++)
        if (getenv(names[i])) return getenv(names[i]);
    return "-1";
}
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "ok";
    int victim = argc > 2 ? atoi(argv[2]) : 0, said = atoi(outer());
    setvbuf(stdout, NULL, _IOLBF, 0);
    t_begin(&argc, &argv);
    EQ(t_rank, said);
    EQ(getenv("PMI_FD") == NULL, 1);
    long mine = 1L << t_rank, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    EQ(all, (1L << t_size) - 1);
    if (!strcmp(how, "nodes")) {
        MPI_Comm near;
        int here = 0;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
        MPI_Comm_size(near, &here);
        EQ(here, t_size / 2);
        MPI_Comm_free(&near);
    }
    if (!strcmp(how, "wait")) {
        printf("ready %d %d\n", t_rank, (int)getpid());
        MPI_Recv(&mine, 1, MPI_LONG, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!strcmp(how, "abort") && t_rank == victim) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(how, "segv") && t_rank == victim) raise(SIGSEGV);
    if (!strcmp(how, "abort") || !strcmp(how, "segv"))
        MPI_Recv(&mine, 1, MPI_LONG, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(how, "stdin") && t_rank == 0) {
        char line[64] = "";
        EQ(fgets(line, sizeof line, stdin) != NULL, 1);
        printf("read %s", line);
    }
    printf("rank %d of %d\n", t_rank, t_size);
    int bad = t_end();
    return !strcmp(how, "exit") && said == victim ? 5 : bad;
}
