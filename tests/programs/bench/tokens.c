/* tokens FIGURE X TOKENS STEP LAPS: TOKENS messages go round a ring of all ranks, each from rank to rank + STEP, until every one has made
 * LAPS rounds. Microseconds for one message from one rank to the next. STEP 1 is the order of the ranks, -1 is against it. */
#include "bench.h"
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int tokens = argc == 6 ? atoi(argv[3]) : 0, step = argc == 6 ? atoi(argv[4]) : 0, laps = argc == 6 ? atoi(argv[5]) : 0;
    if (tokens < 1 || tokens > size || laps < 1) {
        if (rank == 0) fprintf(stderr, "tokens FIGURE X TOKENS STEP LAPS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int to = ((rank + step) % size + size) % size, from = ((rank - step) % size + size) % size;
    /* The tokens start as far apart as can be. */
    int begins = (long)rank * tokens / size != (long)(rank + 1) * tokens / size;
    double start = 0;
    for (int part = 0; part < 2; part++) { /* the first tenth is the warm-up */
        int times = tokens * (part ? laps : laps / 10 + 1);
        long token = rank, seen = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        start = now_us();
        if (begins) MPI_Send(&token, 1, MPI_LONG, to, part, MPI_COMM_WORLD);
        for (int i = 0; i < times; i++) {
            MPI_Recv(&token, 1, MPI_LONG, from, part, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            seen += token;
            if (!begins || i + 1 < times) MPI_Send(&token, 1, MPI_LONG, to, part, MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        start = now_us() - start;
        long expected = 0, all = 0;
        for (int r = 0; r < size; r++)
            if ((long)r * tokens / size != (long)(r + 1) * tokens / size) expected += r;
        MPI_Allreduce(&seen, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (all != expected * size * (times / tokens)) {
            fprintf(stderr, "rank %d: the tokens' sum is %ld\n", rank, all);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
    if (rank == 0) printf("@ %s %s %.4f\n", argv[1], argv[2], start / ((double)tokens * laps * size));
    MPI_Finalize();
    return 0;
}
