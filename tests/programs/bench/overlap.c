/* overlap COMP_MS ITERS CROSSED BYTES...: how much of the communication hides behind computation that does not wait for it (listing 4 of the EuroMPI'20
 * paper on MPI virtualization). The first half of the ranks lives on one node, the second on another, and each rank exchanges four messages
 * with the other node: nothing goes through shared memory. CROSSED 0: all with its counterpart there; 1: two of them with that one's neighbours,
 * so that all ranks depend on each other. All ranks of a node together compute COMP_MS and send BYTES an iteration,
 * so that the same is done whatever their number. The first rank's computing and the last one's transfer have nothing to hide behind, so ITERS are to
 * be many; a quarter of them is enough for either alone. Milliseconds an iteration, medians of the repetitions:
 *   @ comp BYTES MS, @ comm BYTES MS, @ full BYTES MS, @ ratio BYTES (full / max(comp, comm)), and what a call of MPI_Waitall took in the last of
 *   them, of all ranks: @ waitall_BYTES PERMILLE MS */
#include "bench.h"
#define REPS 3
static int rank, size, half, bytes;
static long turns;
static int crossed;
static const int offset[4] = {0, 0, 1, -1};
static char *out[4], *in[4];
static double *waits;
static int waited;

static double compute(long count) {
    double x = 1 + rank;
    for (long i = 0; i < count; i++) x = x * 0.999999 + 1e-6;
    return x;
}

static void communicate(void) {
    MPI_Request requests[8];
    int node = rank / half, here = rank % half;
    for (int k = 0; k < 4; k++) {
        int from = (1 - node) * half + (here - crossed * offset[k] + half) % half;
        MPI_Irecv(in[k], bytes, MPI_BYTE, from, k, MPI_COMM_WORLD, &requests[k]);
    }
    for (int k = 0; k < 4; k++) {
        int to = (1 - node) * half + (here + crossed * offset[k] + half) % half;
        MPI_Isend(out[k], bytes, MPI_BYTE, to, k, MPI_COMM_WORLD, &requests[4 + k]);
    }
    double start = now_us();
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    waits[waited++] = (now_us() - start) / 1e3;
}

/* Milliseconds an iteration, with either part or both: from the first rank's start to the last one's end, by the clock that the nodes share, since
 * a rank alone cannot tell how long others of its core had it before. */
static double phase(int iterations, int computes, int communicates) {
    volatile double sink = 0;
    waited = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (int i = 0; i < iterations; i++) {
        if (computes) sink += compute(turns);
        if (communicates) communicate();
    }
    double mine[2] = {-start, now_us()}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (all[0] + all[1]) / 1e3 / iterations;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, REPS, sizeof *values, ascending);
    return values[REPS / 2];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size % 2 || argc < 5) {
        if (rank == 0) fprintf(stderr, "overlap COMP_MS ITERS CROSSED BYTES... needs an even number of ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    half = size / 2;
    int iterations = atoi(argv[2]), fewer = (iterations + 3) / 4;
    crossed = atoi(argv[3]);
    waits = calloc(iterations, sizeof *waits);
    double *all = calloc((size_t)iterations * size, sizeof *all);
    /* The same number of turns for all, so many that they take COMP_MS. */
    turns = 10000;
    for (int i = 0; i < 12; i++) {
        double best = phase(1, 1, 0), ms;
        for (int k = 0; k < 2; k++) best = (ms = phase(1, 1, 0)) < best ? ms : best;
        double factor = atof(argv[1]) / best;
        turns *= factor > 8 ? 8 : factor;
        MPI_Bcast(&turns, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    }
    for (int a = 4; a < argc; a++) {
        bytes = atoi(argv[a]) / half / 4;
        for (int k = 0; k < 4; k++) {
            out[k] = malloc(bytes), in[k] = malloc(bytes);
            memset(out[k], rank * 4 + k, bytes), memset(in[k], 0, bytes);
        }
        double comp[REPS], comm[REPS], full[REPS];
        phase(fewer, 0, 1);
        for (int i = 0; i < REPS; i++) {
            comp[i] = phase(fewer, 1, 0);
            comm[i] = phase(fewer, 0, 1);
            full[i] = phase(iterations, 1, 1);
        }
        for (int k = 0; k < 4; k++) {
            int from = (1 - rank / half) * half + (rank % half - crossed * offset[k] + half) % half;
            char wanted = (char)(from * 4 + k);
            if (in[k][0] != wanted || in[k][bytes - 1] != wanted) {
                fprintf(stderr, "rank %d: %d bytes of message %d came wrong\n", rank, bytes, k);
                MPI_Abort(MPI_COMM_WORLD, 3);
            }
            free(out[k]), free(in[k]);
        }
        MPI_Gather(waits, iterations, MPI_DOUBLE, all, iterations, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            double t_comp = median(comp), t_comm = median(comm), t_full = median(full);
            printf("@ comp %s %.4f\n@ comm %s %.4f\n@ full %s %.4f\n", argv[a], t_comp, argv[a], t_comm, argv[a], t_full);
            printf("@ ratio %s %.4f\n", argv[a], t_full / (t_comp > t_comm ? t_comp : t_comm));
            long n = (long)iterations * size;
            qsort(all, n, sizeof *all, ascending);
            for (int p = 0; p <= 1000; p += 25) printf("@ waitall_%s %d %.4f\n", argv[a], p, all[(n - 1) * p / 1000]);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
