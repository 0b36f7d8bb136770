/* Collectives on communicators of every kind over several nodes: the world, turned round, one node's, one of each node, pieces; many at
 * once, so that not all find a cell; a barrier holds everyone back; operations that do not commute. */
#include "t.h"
#include <time.h>
static int *a, *b;
#define V(rank, i) ((rank) * 1009 + (i) * 7 + 1)

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Composition of x -> p x + q modulo a prime: associative, does not commute. */
#define PRIME 10007
static void compose(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    int (*x)[2] = in, (*y)[2] = inout;
    for (int i = 0; i < *count; i++) {
        int p = x[i][0] * y[i][0] % PRIME, q = (x[i][0] * y[i][1] + x[i][1]) % PRIME;
        y[i][0] = p, y[i][1] = q;
    }
}

/* All processes of both nodes of a test have the machine's one clock. */
static void barriers(MPI_Comm c, int me, int n) {
    PART("barrier");
    for (int late = 0; late < n && late < 5; late++) {
        double mine[2], last, first;
        if (me == late) for (double until = now() + 2e-3; now() < until;) {}
        mine[0] = now();
        MPI_Barrier(c);
        mine[1] = now();
        MPI_Reduce(mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, c);
        MPI_Reduce(mine + 1, &first, 1, MPI_DOUBLE, MPI_MIN, 0, c);
        if (me == 0) OK(last <= first);
    }
}

static void reductions(MPI_Comm c, int me, int n, int k) {
    PART("reductions");
    for (int i = 0; i < k; i++) a[i] = V(me, i), b[i] = -1;
    MPI_Allreduce(a, b, k, MPI_INT, MPI_SUM, c);
    int wrong = 0;
    for (int i = 0; i < k; i++) wrong += b[i] != n * (n - 1) / 2 * 1009 + n * (i * 7 + 1);
    EQ(wrong, 0);
    MPI_Allreduce(MPI_IN_PLACE, a, k, MPI_INT, MPI_SUM, c);
    OK(memcmp(a, b, k * sizeof *a) == 0);
    for (int root = 0; root < n; root += n > 4 && k > 1000 ? n - 1 : 1) {
        for (int i = 0; i < k; i++) a[i] = V(me, i), b[i] = -1;
        MPI_Reduce(me == root ? MPI_IN_PLACE : a, me == root ? a : NULL, k, MPI_INT, MPI_MAX, root, c);
        for (int i = 0; i < k; i++) wrong += a[i] != (me == root ? V(n - 1, i) : V(me, i));
    }
    EQ(wrong, 0);

    MPI_Op op;
    MPI_Datatype pair;
    MPI_Op_create(compose, 0, &op);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    int pairs = k / 2 + 1;
    int want[2] = {1, 0}, next[2], one = 1;
    for (int r = 0; r < n; r++) {
        int step[2] = {V(r, 0) % 97 + 2, V(r, 1) % 101};
        memcpy(next, step, sizeof next);
        compose(want, next, &one, NULL);
        memcpy(want, next, sizeof want);
    }
    for (int form = 0; form < 2; form++) {
        for (int i = 0; i < pairs; i++) a[2 * i] = V(me, 0) % 97 + 2, a[2 * i + 1] = V(me, 1) % 101, b[2 * i] = -1;
        int root = n - 1;
        if (form == 0) MPI_Allreduce(a, b, pairs, pair, op, c);
        else MPI_Reduce(a, b, pairs, pair, op, root, c);
        if (form == 0 || me == root) for (int i = 0; i < pairs; i++) wrong += b[2 * i] != want[0] || b[2 * i + 1] != want[1];
    }
    EQ(wrong, 0);
    MPI_Type_free(&pair);
    MPI_Op_free(&op);
}

static void movements(MPI_Comm c, int me, int n, int k) {
    PART("movements");
    int wrong = 0;
    for (int root = 0; root < n; root += n > 4 && k > 1000 ? n - 1 : 1) {
        for (int i = 0; i < k; i++) a[i] = me == root ? V(root, i) : -1;
        MPI_Bcast(a, k, MPI_INT, root, c);
        for (int i = 0; i < k; i++) wrong += a[i] != V(root, i);
        for (int i = 0; i < k; i++) a[i] = V(me, i);
        MPI_Gather(a, k, MPI_INT, b, k, MPI_INT, root, c);
        if (me == root) for (int r = 0; r < n; r++) for (int i = 0; i < k; i++) wrong += b[r * k + i] != V(r, i);
        if (me == root) for (int r = 0; r < n; r++) for (int i = 0; i < k; i++) b[r * k + i] = V(root + r, i);
        MPI_Scatter(b, k, MPI_INT, a, k, MPI_INT, root, c);
        for (int i = 0; i < k; i++) wrong += a[i] != V(root + me, i);
    }
    EQ(wrong, 0);
    for (int i = 0; i < n * k; i++) a[i] = V(me, i), b[i] = -1;
    MPI_Allgather(a, k, MPI_INT, b, k, MPI_INT, c);
    for (int r = 0; r < n; r++) for (int i = 0; i < k; i++) wrong += b[r * k + i] != V(r, i);
    MPI_Alltoall(a, k, MPI_INT, b, k, MPI_INT, c);
    for (int r = 0; r < n; r++) for (int i = 0; i < k; i++) wrong += b[r * k + i] != V(r, me * k + i);
    MPI_Alltoall(MPI_IN_PLACE, k, MPI_INT, a, k, MPI_INT, c);
    OK(memcmp(a, b, (size_t)n * k * sizeof *a) == 0);
    EQ(wrong, 0);
}

/* Nonblocking ones under way while blocking ones go through the cell. */
static void mixed(MPI_Comm c, int me, int n) {
    PART("mixed");
    for (int round = 0; round < 50; round++) {
        int mine = me + round, sum = -1, max = -1;
        MPI_Request requests[2];
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, c, &requests[0]);
        MPI_Ibarrier(c, &requests[1]);
        MPI_Barrier(c);
        MPI_Allreduce(&mine, &max, 1, MPI_INT, MPI_MAX, c);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        OK(sum == n * (n - 1) / 2 + n * round && max == n - 1 + round);
    }
}

/* Where the library has them (Open MPI 4 has not). */
int MPI_Allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request *) __attribute__((weak));
int MPI_Bcast_init(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request *) __attribute__((weak));

static void persistent(MPI_Comm c, int me, int n) {
    PART("persistent");
    if (!MPI_Allreduce_init || !MPI_Bcast_init) return;
    int mine = 0, sum = 0, told = 0;
    MPI_Request requests[2];
    MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, c, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(&told, 1, MPI_INT, n - 1, c, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < 20; round++) {
        mine = me * round, told = me == n - 1 ? round : -1;
        MPI_Startall(2, requests);
        if (round % 3 == 0) MPI_Barrier(c);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        OK(sum == n * (n - 1) / 2 * round && told == round);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void exercise(const char *name, MPI_Comm c) {
    if (t_trace) fprintf(stderr, "rank %d: %s\n", t_rank, name);
    if (c == MPI_COMM_NULL) return;
    int me, n;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    barriers(c, me, n);
    static const int sizes[] = {1, 2, 60, 700, 3000, 20000};
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        reductions(c, me, n, sizes[s]);
        if (sizes[s] < 20000) movements(c, me, n, sizes[s]);
    }
    mixed(c, me, n);
    persistent(c, me, n);
}

static void piece(const char *name, int color, int key) {
    MPI_Comm c;
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &c);
    exercise(name, c);
    if (c != MPI_COMM_NULL) MPI_Comm_free(&c);
}

/* More than there are cells, and again when these have been given back. */
static void many(int count) {
    PART("many");
    static MPI_Comm comms[1100];
    for (int i = 0; i < count; i++) {
        if (i % 3) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        else MPI_Comm_split(MPI_COMM_WORLD, 0, -t_rank, &comms[i]);
    }
    for (int i = count - 1; i >= 0; i--) {
        int sum = 0;
        MPI_Barrier(comms[i]);
        MPI_Allreduce(&t_rank, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
        EQ(sum, t_size * (t_size - 1) / 2);
    }
    for (int i = 0; i < count; i++) MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    a = malloc(sizeof *a * 20002 * (t_size + 1));
    b = malloc(sizeof *b * 20002 * (t_size + 1));
    exercise("the world", MPI_COMM_WORLD);
    piece("turned round", 0, -t_rank);
    piece("mixed up", 0, t_rank * 5 % 7);
    piece("every other one", t_rank % 2, t_rank);
    piece("halves", t_rank < t_size / 2, t_rank);
    piece("without the first", t_rank ? 1 : MPI_UNDEFINED, t_rank);
    MPI_Comm node, others;
    int place;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    exercise("a node", node);
    MPI_Comm_rank(node, &place);
    MPI_Comm_dup(node, &others);
    exercise("a node again", others);
    MPI_Comm_free(&others);
    MPI_Comm_free(&node);
    piece("one of each node", place, t_rank);
    MPI_Group world, ends;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int picked[2] = {t_size - 1, 0};
    MPI_Group_incl(world, t_size > 1 ? 2 : 1, picked, &ends);
    MPI_Comm both;
    MPI_Comm_create(MPI_COMM_WORLD, ends, &both);
    exercise("the ends", both);
    if (both != MPI_COMM_NULL) MPI_Comm_free(&both);
    MPI_Group_free(&ends);
    MPI_Group_free(&world);
    many(1100);
    many(50);
    exercise("the world once more", MPI_COMM_WORLD);
    return t_end();
}
