/* Collectives of all ranks: microseconds a call. Arguments: which figures.
 * "barrier", "KIND_BYTES": reductions and bcast of so many bytes, the others of so many from each rank. "PLACE.KIND_BYTES" is the same, whatever the place. */
#include "bench.h"
static int rank, size;
static long bytes;
static double *a, *b;
static void barrier(long times) {
    for (long i = 0; i < times; i++) MPI_Barrier(MPI_COMM_WORLD);
}
static void allreduce(long times) {
    for (long i = 0; i < times; i++) MPI_Allreduce(a, b, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void reduce(long times) {
    for (long i = 0; i < times; i++) MPI_Reduce(a, b, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}
/* The roots take turns, so that no rank runs ahead. */
static void bcast(long times) {
    for (long i = 0; i < times; i++) MPI_Bcast(a, bytes / 8, MPI_DOUBLE, i % size, MPI_COMM_WORLD);
}
static void allgather(long times) {
    for (long i = 0; i < times; i++) MPI_Allgather(a, bytes / 8, MPI_DOUBLE, b, bytes / 8, MPI_DOUBLE, MPI_COMM_WORLD);
}
static void gather(long times) {
    for (long i = 0; i < times; i++) MPI_Gather(a, bytes / 8, MPI_DOUBLE, b, bytes / 8, MPI_DOUBLE, i % size, MPI_COMM_WORLD);
}
static void scatter(long times) {
    for (long i = 0; i < times; i++) MPI_Scatter(b, bytes / 8, MPI_DOUBLE, a, bytes / 8, MPI_DOUBLE, i % size, MPI_COMM_WORLD);
}
static void alltoall(long times) {
    for (long i = 0; i < times; i++) MPI_Alltoall(a, bytes / 8, MPI_DOUBLE, b, bytes / 8, MPI_DOUBLE, MPI_COMM_WORLD);
}
static const struct { const char *name; void (*work)(long); int blocks; } kinds[] = {
    {"allreduce", allreduce, 0}, {"reduce", reduce, 0}, {"bcast", bcast, 0}, {"allgather", allgather, 1},
    {"gather", gather, 1}, {"scatter", scatter, 1}, {"alltoall", alltoall, 1},
};
static void run(const char *figure) {
    if (strcmp(figure, "barrier") == 0) {
        report(figure, measure(barrier));
        return;
    }
    const char *dot = strchr(figure, '.'), *begin = dot ? dot + 1 : figure, *end = strchr(begin, '_');
    for (size_t k = 0; end && k < sizeof kinds / sizeof *kinds; k++) {
        if (strncmp(begin, kinds[k].name, end - begin) != 0 || strlen(kinds[k].name) != (size_t)(end - begin)) continue;
        bytes = atol(end + 1);
        size_t room = bytes * (kinds[k].blocks ? size : 1);
        a = malloc(room), b = malloc(room);
        for (size_t i = 0; i < room / 8; i++) a[i] = rank, b[i] = 0;
        report(figure, measure(kinds[k].work));
        if ((k == 0 || (k == 1 && rank == 0)) && b[bytes / 8 - 1] != size * (size - 1.0) / 2) {
            fprintf(stderr, "rank %d: the sum of all ranks is %g\n", rank, b[bytes / 8 - 1]);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        free(a), free(b);
        return;
    }
    fprintf(stderr, "no figure %s\n", figure);
    MPI_Abort(MPI_COMM_WORLD, 2);
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++) run(argv[i]);
    MPI_Finalize();
    return 0;
}
