/* tokens X FIGURE TOKENS [FIGURE TOKENS]...: TOKENS messages go round a ring of all ranks at the same time, in the order of the ranks
 * (FIGURE_with) and against it (FIGURE_against). Microseconds for one message from one rank to the next. */
#include "bench.h"
static int rank, size, tokens, step;
static long seen, expected;

/* A token starts here: they start as far apart as can be. */
static int begins(int r) { return (long)r * tokens / size != (long)(r + 1) * tokens / size; }

/* Every token goes round `laps` times. */
static void laps(long laps) {
    int to = (rank + step + size) % size, from = (rank - step + size) % size;
    long token = rank, times = tokens * laps;
    if (begins(rank)) MPI_Send(&token, 1, MPI_LONG, to, 0, MPI_COMM_WORLD);
    for (long i = 0; i < times; i++) {
        MPI_Recv(&token, 1, MPI_LONG, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        seen += token;
        if (!begins(rank) || i + 1 < times) MPI_Send(&token, 1, MPI_LONG, to, 0, MPI_COMM_WORLD);
    }
    for (int r = 0; r < size; r++)
        if (begins(r)) expected += r * laps; /* each comes by once a lap */
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int arg = 2; arg == 2 || arg < argc; arg += 2) {
        tokens = arg + 1 < argc ? atoi(argv[arg + 1]) : 0;
        if (tokens < 1 || tokens > size) {
            if (rank == 0) fprintf(stderr, "tokens X FIGURE TOKENS [FIGURE TOKENS]...\n");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        for (step = 1; step >= -1; step -= 2) {
            double us = measure(laps) / ((double)tokens * size);
            if (seen != expected) {
                fprintf(stderr, "rank %d: the sum of its tokens is %ld, not %ld\n", rank, seen, expected);
                MPI_Abort(MPI_COMM_WORLD, 3);
            }
            if (rank == 0) printf("@ %s_%s %s %.4f\n", argv[arg], step == 1 ? "with" : "against", argv[1], us);
        }
    }
    MPI_Finalize();
    return 0;
}
