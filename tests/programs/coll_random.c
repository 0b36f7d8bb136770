/* coll_random SEED ROUNDS: collectives drawn at random, of 0 to 8,000 ints, some of them many times in a row, with the root fixed or in turn, in four
 * communicators, while now and then a rank is late. All ranks draw alike; each value tells whose it is, which, and of what time. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMS = 4, MOST_RANKS = 256, ROOM = 1 << 20 };
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, SCAN, EXSCAN, GATHER, SCATTER, ALLGATHER, ALLGATHERV, ALLTOALL, BLOCKS, PARTS, GATHERV, SCATTERV, ALLTOALLV, KINDS };
static const char *const names[] = {"barrier", "bcast", "reduce", "allreduce", "scan", "exscan", "gather", "scatter",
                                    "allgather", "allgatherv", "alltoall", "reduce_scatter_block", "reduce_scatter",
                                    "gatherv", "scatterv", "alltoallv"};
static int out[ROOM], in[ROOM], world_rank, size, rank, count, root, stamp;
static long wrong;

static uint32_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*state >> 33);
}

static int value(int from, int at) { return (from * 7919 + at * 31 + stamp * 101) & 0xffff; }

static void give(int blocks) {
    for (int i = 0; i < blocks * count; i++) out[i] = value(rank, i), in[i] = -1;
}

static void expect(int got, int wanted, int kind) {
    if (got != wanted && wrong++ < 5)
        fprintf(stderr, "rank %d: %s of %d by %d, root %d: %d, not %d\n", world_rank, names[kind], count, size, root, got, wanted);
}

/* The sum of value `at` over the first ranks. */
static int sum(int ranks, int at) {
    int all = 0;
    for (int from = 0; from < ranks; from++) all += value(from, at);
    return all;
}

/* What one gives another in an alltoallv: nothing to most, if there are many. */
static int part(int from, int to) { return size > 8 && (from + to) % 3 ? 0 : (count + 5 * from + 3 * to) % (count + 1); }

static void run(int kind, MPI_Comm comm) {
    int counts[MOST_RANKS], places[MOST_RANKS], all = 0;
    for (int r = 0; r < size; r++) counts[r] = (count + 5 * r) % (count + 1), places[r] = all, all += counts[r];
    switch (kind) {
    case BARRIER: MPI_Barrier(comm); break;
    case BCAST:
        give(1);
        if (rank != root) memset(out, -1, count * sizeof *out);
        MPI_Bcast(out, count, MPI_INT, root, comm);
        for (int i = 0; i < count; i++) expect(out[i], value(root, i), kind);
        break;
    case REDUCE:
        give(1);
        MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, root, comm);
        for (int i = 0; i < count; i++) expect(in[i], rank == root ? sum(size, i) : -1, kind);
        break;
    case ALLREDUCE:
        give(1);
        MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < count; i++) expect(in[i], sum(size, i), kind);
        break;
    case SCAN:
        give(1);
        MPI_Scan(out, in, count, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < count; i++) expect(in[i], sum(rank + 1, i), kind);
        break;
    case EXSCAN:
        give(1);
        MPI_Exscan(out, in, count, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < count && rank > 0; i++) expect(in[i], sum(rank, i), kind);
        break;
    case GATHER:
        give(size);
        MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, root, comm);
        for (int i = 0; i < size * count && rank == root; i++) expect(in[i], value(i / count, i % count), kind);
        break;
    case SCATTER:
        give(size);
        MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, root, comm);
        for (int i = 0; i < count; i++) expect(in[i], value(root, rank * count + i), kind);
        break;
    case ALLGATHER:
        give(size);
        MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, comm);
        for (int i = 0; i < size * count; i++) expect(in[i], value(i / count, i % count), kind);
        break;
    case ALLGATHERV:
        give(size);
        MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, comm);
        for (int from = 0; from < size; from++)
            for (int i = 0; i < counts[from]; i++) expect(in[places[from] + i], value(from, i), kind);
        break;
    case ALLTOALL:
        give(size);
        MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm);
        for (int i = 0; i < size * count; i++) expect(in[i], value(i / count, rank * count + i % count), kind);
        break;
    case BLOCKS:
        give(size);
        MPI_Reduce_scatter_block(out, in, count, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < count; i++) expect(in[i], sum(size, rank * count + i), kind);
        break;
    case PARTS:
        give(size);
        MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < counts[rank]; i++) expect(in[i], sum(size, places[rank] + i), kind);
        break;
    case GATHERV:
        give(size);
        MPI_Gatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, root, comm);
        for (int from = 0; from < size && rank == root; from++)
            for (int i = 0; i < counts[from]; i++) expect(in[places[from] + i], value(from, i), kind);
        break;
    case SCATTERV:
        give(size);
        MPI_Scatterv(out, counts, places, MPI_INT, in, counts[rank], MPI_INT, root, comm);
        for (int i = 0; i < counts[rank]; i++) expect(in[i], value(root, places[rank] + i), kind);
        break;
    case ALLTOALLV: {
        int sends[MOST_RANKS], there[MOST_RANKS], takes[MOST_RANKS], here[MOST_RANKS];
        give(size);
        for (int r = 0; r < size; r++) sends[r] = part(rank, r), takes[r] = part(r, rank), there[r] = here[r] = r * count;
        MPI_Alltoallv(out, sends, there, MPI_INT, in, takes, here, MPI_INT, comm);
        for (int from = 0; from < size; from++)
            for (int i = 0; i < count; i++)
                expect(in[from * count + i], i < takes[from] ? value(from, rank * count + i) : -1, kind);
        break;
    }
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int world;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (argc < 3 || world > MOST_RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
    uint64_t shared = atoi(argv[1]), own = shared * 77 + world_rank + 1;
    MPI_Comm comms[COMMS] = {MPI_COMM_WORLD};
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank * 3 / world, world_rank, &comms[3]);
    for (int rounds = atoi(argv[2]); rounds > 0; rounds--) {
        MPI_Comm comm = comms[draw(&shared) % COMMS];
        int kind = draw(&shared) % KINDS, first = draw(&shared) % MOST_RANKS, in_turn = draw(&shared) % 2;
        count = draw(&shared) % (1 << draw(&shared) % 14);
        int times = draw(&shared) % 4 == 0 ? draw(&shared) % 90 : 1;
        MPI_Comm_size(comm, &size);
        MPI_Comm_rank(comm, &rank);
        if (count > ROOM / size) count = ROOM / size;
        if (draw(&own) % 8 == 0)
            for (volatile int late = draw(&own) % 20000; late > 0;) late--;
        for (int time = 0; time < times; time++) {
            root = (first + (in_turn ? time : 0)) % size;
            stamp++;
            run(kind, comm);
        }
    }
    long all;
    MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (world_rank == 0 && all == 0) puts("all checks hold");
    if (world_rank == 0 && all != 0) printf("%ld values are wrong\n", all);
    for (int c = 1; c < COMMS; c++) MPI_Comm_free(&comms[c]);
    MPI_Finalize();
    return 0;
}
