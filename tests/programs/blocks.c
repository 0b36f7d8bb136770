/* Small blocks of all for all, from and to a root, and reductions, contiguous, strided and in place, many times over; with "differ", "far" or "much", ranks that disagree
 * about the size. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;
static MPI_Datatype strided; /* three ints, every second one */

static int value(int from, int to, int i, int time) {
    return from * 100000 + to * 1000 + i * 7 + time;
}

static void expect(const int *data, int step, int from, int to, int count, int time) {
    for (int i = 0; i < count; i++) wrong += data[i * step] != value(from, to, i, time);
}

static void exchange(int blocks, int time) {
    int count = 3 * blocks;
    size_t bytes = (size_t)size * count * 2 * sizeof(int);
    int *out = malloc(bytes), *in = malloc(bytes);
    for (int i = 0; i < count; i++) out[i] = value(rank, 0, i, time);
    memset(in, 0, bytes);
    MPI_Allgather(out, count, MPI_INT, in, blocks, strided, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) expect(in + from * count * 2, 2, from, 0, count, time);
    for (int i = 0; i < count; i++) in[rank * count + i] = value(rank, 1, i, time);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) expect(in + from * count, 1, from, 1, count, time);
    for (int to = 0; to < size; to++)
        for (int i = 0; i < count; i++) out[to * count + i] = value(rank, to, i, time);
    memset(in, 0, bytes);
    MPI_Alltoall(out, count, MPI_INT, in, blocks, strided, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) expect(in + from * count * 2, 2, from, rank, count, time);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, out, count, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) expect(out + from * count, 1, from, rank, count, time);
    free(out), free(in);
}

/* Blocks of different sizes, some empty, with gaps between them. */
static void uneven(int blocks, int time) {
    int *counts = malloc(2 * sizeof(int) * size), *places = counts + size, room = 0;
    for (int from = 0; from < size; from++) counts[from] = (from + time) % 3 * blocks, places[from] = room, room += counts[from] + 1;
    int count = counts[rank], *out = malloc((count + 1) * sizeof(int)), *in = malloc(room * sizeof(int));
    for (int i = 0; i < count; i++) out[i] = value(rank, 0, i, time);
    for (int in_place = 0; in_place < 2; in_place++) {
        memset(in, 0xff, room * sizeof(int));
        if (in_place) memcpy(in + places[rank], out, count * sizeof(int));
        MPI_Allgatherv(in_place ? MPI_IN_PLACE : out, count, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
        for (int from = 0; from < size; from++) {
            expect(in + places[from], 1, from, 0, counts[from], time);
            wrong += in[places[from] + counts[from]] != -1;
        }
    }
    free(counts), free(out), free(in);
}

/* Many times in a row, so that who need not wait runs ahead. */
static void rooted(int blocks, int time) {
    int count = 3 * blocks;
    size_t bytes = (size_t)size * count * 2 * sizeof(int);
    int *one = malloc(count * 2 * sizeof(int)), *all = malloc(bytes);
    for (int root = 0; root < size && root < 12; root += 1 + (time + root) % 3) {
        for (int i = 0; i < count; i++) one[i] = value(rank, root, i, time);
        memset(all, 0, bytes);
        MPI_Gather(one, count, MPI_INT, all, blocks, strided, root, MPI_COMM_WORLD);
        if (rank == root)
            for (int from = 0; from < size; from++) expect(all + from * count * 2, 2, from, root, count, time);
        if (rank == root)
            for (int i = 0; i < count; i++) all[rank * count + i] = value(rank, root, i, time);
        MPI_Gather(rank == root ? MPI_IN_PLACE : one, count, MPI_INT, all, count, MPI_INT, root, MPI_COMM_WORLD);
        if (rank == root)
            for (int from = 0; from < size; from++) expect(all + from * count, 1, from, root, count, time);
        for (int to = 0; to < size; to++)
            for (int i = 0; i < count; i++) all[to * count + i] = value(root, to, i, time);
        memset(one, 0, count * 2 * sizeof(int));
        MPI_Scatter(all, count, MPI_INT, one, blocks, strided, root, MPI_COMM_WORLD);
        expect(one, 2, root, rank, count, time);
        memset(one, 0, count * sizeof(int));
        MPI_Scatter(all, count, MPI_INT, rank == root ? MPI_IN_PLACE : one, count, MPI_INT, root, MPI_COMM_WORLD);
        if (rank != root) expect(one, 1, root, rank, count, time);
    }
    free(one), free(all);
}

/* What ranks 0 to `ranks` - 1 of all have at `i`, added up; not the same at each. */
static long long sum(int ranks, int i, int time) {
    return ranks * (ranks - 1LL) / 2 * (i + 1) + (long long)ranks * time;
}

static void reductions(int count, int time) {
    long long *mine = malloc(sizeof *mine * count * size), *out = malloc(sizeof *out * count * size);
    int *counts = malloc(sizeof *counts * size), before = 0;
    for (int i = 0; i < count * size; i++) mine[i] = (long long)rank * (i + 1) + time;
    MPI_Scan(mine, out, count, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) wrong += out[i] != sum(rank + 1, i, time);
    for (int i = 0; i < count; i++) out[i] = -1;
    MPI_Exscan(mine, out, count, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) wrong += out[i] != (rank == 0 ? -1 : sum(rank, i, time));
    memcpy(out, mine, sizeof *out * count);
    MPI_Scan(MPI_IN_PLACE, out, count, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) wrong += out[i] != sum(rank + 1, i, time);
    memcpy(out, mine, sizeof *out * count);
    MPI_Exscan(MPI_IN_PLACE, out, count, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) wrong += rank > 0 && out[i] != sum(rank, i, time);
    MPI_Reduce_scatter_block(mine, out, count, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) wrong += out[i] != sum(size, rank * count + i, time);
    for (int to = 0; to < size; to++) counts[to] = count - to % 3 % (count + 1);
    for (int to = 0; to < rank; to++) before += counts[to];
    memcpy(out, mine, sizeof *out * count * size);
    MPI_Reduce_scatter(MPI_IN_PLACE, out, counts, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < counts[rank]; i++) wrong += out[i] != sum(size, before + i, time);
    for (int root = size - 1; root >= 0 && root > size - 5; root--) {
        MPI_Reduce(mine, out, count, MPI_LONG_LONG, MPI_SUM, root, MPI_COMM_WORLD);
        for (int i = 0; rank == root && i < count; i++) wrong += out[i] != sum(size, i, time);
    }
    free(mine), free(out), free(counts);
}

static int class_of(int code) {
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    return class;
}

/* As with messages, who is given more than it wants hears of it; less is no error. Nobody waits for ever. */
static void differ(void) {
    static char out[1 << 20], in[64 * 64];
    int counts[64], places[64];
    for (int from = 0; from < size; from++) counts[from] = 8, places[from] = 8 * from;
    int one = rank == 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    memset(in, 'x', sizeof in);
    wrong += class_of(MPI_Allgather(out, one ? 4 : 8, MPI_CHAR, in, 8, MPI_CHAR, MPI_COMM_WORLD)) != MPI_SUCCESS;
    wrong += in[8] != 0 || in[11] != 0 || in[12] != 'x' || in[15] != 'x';
    wrong += class_of(MPI_Allgatherv(out, one ? 4 : 8, MPI_CHAR, in, counts, places, MPI_CHAR, MPI_COMM_WORLD)) != MPI_SUCCESS;
    wrong += class_of(MPI_Allgather(out, one ? 4 : 8, MPI_CHAR, in, one ? 4 : 8, MPI_CHAR, MPI_COMM_WORLD)) != (one ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    /* Rank 1 gives more than all want, itself included; then it thinks that all blocks are larger, which of two ranks it cannot see. */
    wrong += class_of(MPI_Allgather(out, one ? (int)sizeof out : 8, MPI_CHAR, in, 8, MPI_CHAR, MPI_COMM_WORLD)) != MPI_ERR_TRUNCATE;
    wrong += class_of(MPI_Allgather(out, one ? 32 : 8, MPI_CHAR, in, one ? 32 : 8, MPI_CHAR, MPI_COMM_WORLD)) != (one && size == 2 ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
    int given = one ? 4 : 8, all = one ? 4 * size : 8 * size;
    memset(in, 'x', sizeof in);
    wrong += class_of(MPI_Alltoall(out, given, MPI_CHAR, in, 8, MPI_CHAR, MPI_COMM_WORLD)) != MPI_SUCCESS;
    wrong += in[8] != 0 || in[11] != 0 || in[12] != 'x';
    memset(out, 'y', all);
    wrong += class_of(MPI_Gather(out, given, MPI_CHAR, in, 8, MPI_CHAR, 0, MPI_COMM_WORLD)) != MPI_SUCCESS;
    wrong += rank == 0 && (in[8] != 'y' || in[11] != 'y' || in[12] != 'x');
    wrong += class_of(MPI_Gather(out, one ? 16 : 8, MPI_CHAR, in, 8, MPI_CHAR, 0, MPI_COMM_WORLD)) != (rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    wrong += class_of(MPI_Scatter(in, 8, MPI_CHAR, out, given, MPI_CHAR, 0, MPI_COMM_WORLD)) != (one ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    wrong += class_of(MPI_Scatter(in, 8, MPI_CHAR, out, one ? 16 : 8, MPI_CHAR, 0, MPI_COMM_WORLD)) != MPI_SUCCESS;
}

/* The same where each block has a count of its own: rank 1 gives less than is wanted, a little more, and so much more that it goes by a message; and then all is right. */
static void differ_listed(void) {
    static char out[1 << 20], in[64 * 64];
    int counts[64], places[64], given[64];
    static const int sizes[] = {4, 16, 100000, 8};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int time = 0; time < 4; time++) {
        int more = sizes[time] > 8, one = rank == 1;
        for (int r = 0; r < size; r++) counts[r] = 8, places[r] = 8 * r, given[r] = one && r != 1 ? sizes[time] : 8;
        memset(out, 'a' + rank % 26, sizeof out), memset(in, 'x', sizeof in);
        wrong += class_of(MPI_Gatherv(out, one ? sizes[time] : 8, MPI_CHAR, in, counts, places, MPI_CHAR, 0, MPI_COMM_WORLD)) !=
                 (rank == 0 && more ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        wrong += rank == 0 && size > 2 && (in[16] != 'c' || in[23] != 'c');
        wrong += rank == 0 && !more && (in[8] != 'b' || (sizes[time] == 4 && in[12] != 'x'));
        memset(in, 'x', sizeof in);
        wrong += class_of(MPI_Scatterv(out, given, places, MPI_CHAR, in, 8, MPI_CHAR, 1, MPI_COMM_WORLD)) !=
                 (!one && more ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        wrong += !one && !more && (in[0] != 'b' || in[3] != 'b');
        memset(in, 'x', sizeof in);
        wrong += class_of(MPI_Alltoallv(out, given, places, MPI_CHAR, in, counts, places, MPI_CHAR, MPI_COMM_WORLD)) !=
                 (!one && more ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        wrong += in[8 * rank] != 'a' + rank % 26 || (size > 2 && (in[16] != 'c' || in[23] != 'c'));
    }
}

static void hears(int code, int whom, const char *what) {
    int class = class_of(code);
    if (whom ? class == MPI_ERR_TRUNCATE : class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE) return;
    fprintf(stderr, "rank %d: %s: class %d\n", rank, what, class);
    wrong++;
}

/* As above where blocks pass through other ranks: who is given more than it has room for hears of it, wherever that shows. */
static void differ_far(void) {
    int last = size - 1, more = rank == last ? 16 : 8;
    char *out = calloc(size, 16), *in = calloc(size, 16);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    hears(MPI_Gather(out, more, MPI_CHAR, in, 8, MPI_CHAR, 0, MPI_COMM_WORLD), rank == 0, "MPI_Gather");
    hears(MPI_Scatter(out, 16, MPI_CHAR, in, rank == 0 ? 16 : 8, MPI_CHAR, 0, MPI_COMM_WORLD), rank > 0, "MPI_Scatter");
    hears(MPI_Allgather(out, more, MPI_CHAR, in, more, MPI_CHAR, MPI_COMM_WORLD), rank < last, "MPI_Allgather");
    hears(MPI_Alltoall(out, more, MPI_CHAR, in, more, MPI_CHAR, MPI_COMM_WORLD), rank < last, "MPI_Alltoall");
    hears(MPI_Reduce(out, in, more, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD), rank == 0, "MPI_Reduce");
    hears(MPI_Bcast(out, rank == 0 ? 16 : 8, MPI_BYTE, 0, MPI_COMM_WORLD), rank > 0, "MPI_Bcast");
    more = rank == 0 ? 16 : 8;
    hears(MPI_Allreduce(out, in, more, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD), 0, "MPI_Allreduce");
    free(out), free(in);
}

/* As above, by so much that what the ranks have lies in different places of a cell. Who gives less than is wanted is heard, and all that follows is right. */
static void differ_much(void) {
    enum { MANY = 4096, SOME = 2000, FEW = 1000 };
    int last = size - 1, odd = rank == last;
    char *out = calloc(size, MANY), *in = calloc(size, MANY);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int time = 0; time < 70; time++) { /* more often than operations may be under way */
        memset(out, 'a' + (rank + time) % 26, (size_t)size * MANY), memset(in, 'x', (size_t)size * MANY);
        char mine = 'a' + (rank + time) % 26, of_root = 'a' + time % 26, of_last = 'a' + (last + time) % 26;
        wrong += MPI_Bcast(rank ? in : out, rank ? MANY : SOME, MPI_CHAR, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
        wrong += rank && (in[0] != of_root || in[SOME - 1] != of_root || in[SOME] != 'x');
        wrong += MPI_Bcast(in, 1, MPI_CHAR, 0, MPI_COMM_WORLD) != MPI_SUCCESS || (rank && in[0] != 'x');
        hears(MPI_Bcast(in, rank ? FEW : MANY, MPI_CHAR, 0, MPI_COMM_WORLD), rank > 0, "MPI_Bcast");
        wrong += MPI_Scatter(out, FEW, MPI_CHAR, in, SOME, MPI_CHAR, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
        wrong += in[0] != of_root || in[FEW - 1] != of_root;
        wrong += MPI_Gather(out, FEW, MPI_CHAR, in, SOME, MPI_CHAR, last, MPI_COMM_WORLD) != MPI_SUCCESS;
        for (int from = 0; odd && from < size; from++)
            wrong += in[from * SOME] != 'a' + (from + time) % 26 || in[from * SOME + FEW - 1] != 'a' + (from + time) % 26;
        hears(MPI_Gather(out, odd ? MANY : 8, MPI_CHAR, in, 8, MPI_CHAR, 0, MPI_COMM_WORLD), rank == 0, "MPI_Gather");
        hears(MPI_Allgather(out, odd ? SOME : 8, MPI_CHAR, in, odd ? SOME : 8, MPI_CHAR, MPI_COMM_WORLD), !odd, "MPI_Allgather");
        wrong += odd && (in[0] != of_root || in[last * SOME + SOME - 1] != of_last);
        hears(MPI_Alltoall(out, odd ? 600 : 8, MPI_CHAR, in, odd ? 600 : 8, MPI_CHAR, MPI_COMM_WORLD), !odd, "MPI_Alltoall");
        hears(MPI_Reduce(out, in, odd ? MANY : 8, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD), rank == 0, "MPI_Reduce");
        hears(MPI_Allreduce(out, in, odd ? SOME : 8, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD), 1, "MPI_Allreduce");
        hears(MPI_Scan(out, in, odd ? SOME : 8, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD), 0, "MPI_Scan");
        char sum = 0;
        wrong += MPI_Allreduce(&mine, &sum, 1, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS || sum < mine;
    }
    free(out), free(in);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Datatype vector;
    MPI_Type_vector(3, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 6 * sizeof(int), &strided);
    MPI_Type_commit(&strided);
    if (argc > 1 && strcmp(argv[1], "differ") == 0) {
        differ();
        differ_listed();
    }
    if (argc > 1 && strcmp(argv[1], "far") == 0) differ_far();
    if (argc > 1 && strcmp(argv[1], "much") == 0) differ_much();
    for (int time = 0; time < 20; time++)
        for (int blocks = 1; blocks < 500; blocks = blocks * 3 + 1) {
            exchange(blocks, time);
            uneven(blocks, time);
            rooted(blocks, time);
            reductions(blocks, time);
            rooted(1, time);
        }
    int all;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && all == 0) puts("all checks hold");
    if (rank == 0 && all != 0) printf("%d values are wrong\n", all);
    MPI_Type_free(&strided), MPI_Type_free(&vector);
    MPI_Finalize();
    return 0;
}
