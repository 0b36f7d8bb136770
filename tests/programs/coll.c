/* All blocking collectives, every root, sizes across the algorithms' switching points, v and w variants, IN_PLACE, on the
 * world and on a communicator with reversed ranks. With "nb" as argument: the same through the nonblocking calls. */
#include "t.h"
static MPI_Comm c;
static int n, me, nb;
static MPI_Request q;
/* CALL(Bcast, args...): MPI_Bcast(args..., c), or MPI_Ibcast and a wait. */
#define CALL(Blocking, Nonblocking, ...) (nb ? (Nonblocking(__VA_ARGS__, c, &q), MPI_Wait(&q, MPI_STATUS_IGNORE)) : Blocking(__VA_ARGS__, c))
static const int sizes[] = {0, 1, 2, 5, 100, 1023, 4096, 20000};
#define V(rank, i) ((rank) * 100003 + (i) * 17 + 1)
static int *a, *b;

static void fill(int *p, int count, int rank) {
    for (int i = 0; i < count; i++) p[i] = V(rank, i);
}
static int same(const int *p, int count, int rank, int from) {
    for (int i = 0; i < count; i++)
        if (p[i] != V(rank, from + i)) return 0;
    return 1;
}
static void spoil(int count) {
    for (int i = 0; i < count; i++) b[i] = -7;
}

static void rooted(int k, int root) {
    PART("bcast");
    if (me == root) fill(b, k, root); else spoil(k);
    CALL(MPI_Bcast, MPI_Ibcast, b, k, MPI_INT, root);
    OK(same(b, k, root, 0));

    PART("gather, scatter");
    fill(a, k, me);
    spoil(k * n);
    CALL(MPI_Gather, MPI_Igather, a, k, MPI_INT, b, k, MPI_INT, root);
    if (me == root) for (int r = 0; r < n; r++) OK(same(b + r * k, k, r, 0));
    if (me == root) {
        fill(b + me * k, k, me);
        CALL(MPI_Gather, MPI_Igather, MPI_IN_PLACE, k, MPI_INT, b, k, MPI_INT, root);
        for (int r = 0; r < n; r++) OK(same(b + r * k, k, r, 0));
    } else CALL(MPI_Gather, MPI_Igather, a, k, MPI_INT, NULL, 0, MPI_INT, root);
    fill(a, k * n, root);
    spoil(k);
    CALL(MPI_Scatter, MPI_Iscatter, me == root ? a : NULL, k, MPI_INT, b, k, MPI_INT, root);
    OK(same(b, k, root, me * k));
    if (me == root) CALL(MPI_Scatter, MPI_Iscatter, a, k, MPI_INT, MPI_IN_PLACE, k, MPI_INT, root);
    else CALL(MPI_Scatter, MPI_Iscatter, NULL, k, MPI_INT, b, k, MPI_INT, root);
    OK(me == root || same(b, k, root, me * k));

    PART("gatherv, scatterv: rank r has k + r elements, with gaps");
    int counts[n], places[n], at = 0;
    for (int r = 0; r < n; r++) counts[r] = k + r, places[r] = at, at += counts[r] + 3;
    fill(a, k + me, me);
    spoil(at);
    CALL(MPI_Gatherv, MPI_Igatherv, a, k + me, MPI_INT, b, counts, places, MPI_INT, root);
    if (me == root) for (int r = 0; r < n; r++) OK(same(b + places[r], counts[r], r, 0) && b[places[r] + counts[r]] == -7);
    fill(a, at, root);
    spoil(k + n);
    CALL(MPI_Scatterv, MPI_Iscatterv, a, counts, places, MPI_INT, b, k + me, MPI_INT, root);
    OK(same(b, k + me, root, places[me]) && b[k + me] == -7);

    PART("reduce");
    for (int i = 0; i < k; i++) a[i] = (me + 1) * (i + 1);
    spoil(k);
    CALL(MPI_Reduce, MPI_Ireduce, a, b, k, MPI_INT, MPI_SUM, root);
    if (me == root) for (int i = 0; i < k; i++) OK(b[i] == n * (n + 1) / 2 * (i + 1));
    if (k > 500 && !getenv("VMPI_JOBID")) return; /* MPICH 4.0.2 crashes on IN_PLACE at a root other than 0 */
    if (me == root) {
        memcpy(b, a, k * sizeof *a);
        CALL(MPI_Reduce, MPI_Ireduce, MPI_IN_PLACE, b, k, MPI_INT, MPI_MAX, root);
        for (int i = 0; i < k; i++) OK(b[i] == n * (i + 1));
    } else CALL(MPI_Reduce, MPI_Ireduce, a, NULL, k, MPI_INT, MPI_MAX, root);
}

static void unrooted(int k) {
    int counts[n], places[n], scounts[n], splaces[n], at = 0;
    PART("allgather");
    fill(a, k, me);
    spoil(k * n);
    CALL(MPI_Allgather, MPI_Iallgather, a, k, MPI_INT, b, k, MPI_INT);
    for (int r = 0; r < n; r++) OK(same(b + r * k, k, r, 0));
    spoil(k * n);
    fill(b + me * k, k, me);
    CALL(MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, k, MPI_INT);
    for (int r = 0; r < n; r++) OK(same(b + r * k, k, r, 0));

    PART("allgatherv");
    for (int r = 0; r < n; r++) counts[r] = r % 2 ? k : 2 * r, places[r] = at, at += counts[r] + 1;
    fill(a, counts[me], me);
    spoil(at);
    CALL(MPI_Allgatherv, MPI_Iallgatherv, a, counts[me], MPI_INT, b, counts, places, MPI_INT);
    for (int r = 0; r < n; r++) OK(same(b + places[r], counts[r], r, 0) && b[places[r] + counts[r]] == -7);

    PART("alltoall");
    for (int r = 0; r < n; r++) for (int i = 0; i < k; i++) a[r * k + i] = V(me * n + r, i);
    spoil(k * n);
    CALL(MPI_Alltoall, MPI_Ialltoall, a, k, MPI_INT, b, k, MPI_INT);
    for (int r = 0; r < n; r++) OK(same(b + r * k, k, r * n + me, 0));
    CALL(MPI_Alltoall, MPI_Ialltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, k, MPI_INT);
    for (int r = 0; r < n; r++) OK(same(b + r * k, k, me * n + r, 0));

    PART("alltoallv, alltoallw: rank s sends (s + r) % 3 + k/8 elements to r");
    int rat = 0, sat = 0;
    for (int r = 0; r < n; r++) {
        scounts[r] = counts[r] = (me + r) % 3 + k / 8;
        splaces[r] = sat, sat += scounts[r] + 1;
        places[r] = rat, rat += counts[r] + 2;
        for (int i = 0; i < scounts[r]; i++) a[splaces[r] + i] = V(me * n + r, i);
    }
    spoil(rat);
    CALL(MPI_Alltoallv, MPI_Ialltoallv, a, scounts, splaces, MPI_INT, b, counts, places, MPI_INT);
    for (int r = 0; r < n; r++) OK(same(b + places[r], counts[r], r * n + me, 0) && b[places[r] + counts[r]] == -7);
    MPI_Datatype types[n];
    for (int r = 0; r < n; r++) types[r] = MPI_INT, splaces[r] *= 4, places[r] *= 4;
    spoil(rat);
    CALL(MPI_Alltoallw, MPI_Ialltoallw, a, scounts, splaces, types, b, counts, places, types);
    for (int r = 0; r < n; r++) OK(same(b + places[r] / 4, counts[r], r * n + me, 0) && b[places[r] / 4 + counts[r]] == -7);

    PART("allreduce, scans");
    for (int i = 0; i < k; i++) a[i] = (me + 1) * (i + 1);
    spoil(k);
    CALL(MPI_Allreduce, MPI_Iallreduce, a, b, k, MPI_INT, MPI_SUM);
    for (int i = 0; i < k; i++) OK(b[i] == n * (n + 1) / 2 * (i + 1));
    memcpy(b, a, k * sizeof *a);
    CALL(MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, b, k, MPI_INT, MPI_MIN);
    for (int i = 0; i < k; i++) OK(b[i] == i + 1);
    CALL(MPI_Scan, MPI_Iscan, a, b, k, MPI_INT, MPI_SUM);
    for (int i = 0; i < k; i++) OK(b[i] == (me + 1) * (me + 2) / 2 * (i + 1));
    memcpy(b, a, k * sizeof *a);
    CALL(MPI_Scan, MPI_Iscan, MPI_IN_PLACE, b, k, MPI_INT, MPI_SUM);
    for (int i = 0; i < k; i++) OK(b[i] == (me + 1) * (me + 2) / 2 * (i + 1));
    CALL(MPI_Exscan, MPI_Iexscan, a, b, k, MPI_INT, MPI_SUM);
    if (me) for (int i = 0; i < k; i++) OK(b[i] == me * (me + 1) / 2 * (i + 1));
    memcpy(b, a, k * sizeof *a);
    CALL(MPI_Exscan, MPI_Iexscan, MPI_IN_PLACE, b, k, MPI_INT, MPI_SUM);
    if (me) for (int i = 0; i < k; i++) OK(b[i] == me * (me + 1) / 2 * (i + 1));

    PART("reduce_scatter");
    int total = 0, mine = 0;
    for (int r = 0; r < n; r++) {
        if (r == me) mine = total;
        total += counts[r] = r % 3 ? k : r + 1;
    }
    for (int i = 0; i < total; i++) a[i] = (me + 1) * (i + 1);
    spoil(counts[me] + 1);
    CALL(MPI_Reduce_scatter, MPI_Ireduce_scatter, a, b, counts, MPI_INT, MPI_SUM);
    for (int i = 0; i < counts[me]; i++) OK(b[i] == n * (n + 1) / 2 * (mine + i + 1));
    OK(b[counts[me]] == -7);
    memcpy(b, a, total * sizeof *a);
    CALL(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_IN_PLACE, b, counts, MPI_INT, MPI_SUM);
    for (int i = 0; i < counts[me]; i++) OK(b[i] == n * (n + 1) / 2 * (mine + i + 1));
    for (int i = 0; i < k * n; i++) a[i] = (me + 1) * (i + 1);
    spoil(k);
    CALL(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, a, b, k, MPI_INT, MPI_SUM);
    for (int i = 0; i < k; i++) OK(b[i] == n * (n + 1) / 2 * (me * k + i + 1));
    if (nb) MPI_Ibarrier(c, &q), MPI_Wait(&q, MPI_STATUS_IGNORE);
    else MPI_Barrier(c);
}

/* x -> p*x + q, composed: associative, not commutative. In unsigned arithmetic, exact. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    unsigned *f = in, *g = inout;
    for (int i = 0; i < *len; i++, f += 2, g += 2) g[1] = g[0] * f[1] + g[1], g[0] = g[0] * f[0];
}

static void ordered(int k) {
    PART("a user's operation that does not commute");
    MPI_Datatype pair;
    MPI_Op op;
    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    unsigned *x = malloc((2 * k + 2) * sizeof *x), *y = malloc((2 * k + 2) * sizeof *y), *want = malloc((2 * k + 2) * sizeof *y);
    for (int root = 0; root < n; root += n > 1 ? n - 1 : 1) {
        for (int i = 0; i < k; i++) {
            want[2 * i] = 1, want[2 * i + 1] = 0;
            for (int r = 0; r < n; r++) {
                unsigned f[2] = {2 * r + 3, r * r + i};
                want[2 * i + 1] = f[0] * want[2 * i + 1] + f[1];
                want[2 * i] *= f[0];
            }
            x[2 * i] = 2 * me + 3, x[2 * i + 1] = me * me + i;
        }
        memset(y, 0, 2 * k * sizeof *y);
        CALL(MPI_Reduce, MPI_Ireduce, x, y, k, pair, op, root);
        if (me == root) EQ(memcmp(y, want, 2 * k * sizeof *y), 0);
        memset(y, 0, 2 * k * sizeof *y);
        CALL(MPI_Allreduce, MPI_Iallreduce, x, y, k, pair, op);
        EQ(memcmp(y, want, 2 * k * sizeof *y), 0);
        CALL(MPI_Scan, MPI_Iscan, x, y, k, pair, op);
        if (me == n - 1) EQ(memcmp(y, want, 2 * k * sizeof *y), 0);
    }
    unsigned *big = malloc((2 * k * n + 2) * sizeof *big);
    for (int i = 0; i < k * n; i++) big[2 * i] = x[0], big[2 * i + 1] = me * me + i % (k ? k : 1);
    CALL(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, big, y, k, pair, op);
    EQ(memcmp(y, want, 2 * k * sizeof *y), 0);
    free(x), free(y), free(want), free(big);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
}

static void strided(void) {
    PART("derived types on one side only");
    MPI_Datatype every_other;
    MPI_Type_vector(50, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    fill(a, 100, me);
    spoil(100 * n);
    CALL(MPI_Allgather, MPI_Iallgather, a, 1, every_other, b, 50, MPI_INT);
    for (int r = 0; r < n; r++) for (int i = 0; i < 50; i++) OK(b[r * 50 + i] == V(r, 2 * i));
    spoil(100);
    if (me == 0) CALL(MPI_Bcast, MPI_Ibcast, a, 1, every_other, 0);
    else CALL(MPI_Bcast, MPI_Ibcast, b, 50, MPI_INT, 0);
    if (me) for (int i = 0; i < 50; i++) OK(b[i] == V(0, 2 * i));
    MPI_Type_free(&every_other);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    nb = argc > 1 && !strcmp(argv[1], "nb");
    a = malloc(sizeof *a * (20000 + 64) * (t_size + 2));
    b = malloc(sizeof *b * (20000 + 64) * (t_size + 2));
    for (int turned = 0; turned < 2; turned++) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, turned ? -t_rank : t_rank, &c);
        MPI_Comm_rank(c, &me);
        MPI_Comm_size(c, &n);
        for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            for (int root = 0; root < n; root++)
                if (sizes[s] <= 100 || root == n / 2) rooted(sizes[s], root);
            unrooted(sizes[s]);
            ordered(sizes[s]);
        }
        strided();
        MPI_Comm_free(&c);
    }
    say("collectives done");
    return t_end();
}
