/* Ranks spawned over several nodes: spawn_far NODES. Parents, children and grandchildren exchange messages of all sizes, collectives and one-sided
 * transfers, wherever they live. Checked by itself. */
#include "t.h"
#include <unistd.h>

enum { BIG = 1 << 20, MANY = 7 };
static const char *nodes_text = "2";

/* How many nodes the members of `comm` live on, and what each finds of its own is alike. */
static int nodes_of(MPI_Comm comm) {
    MPI_Comm shared;
    int rank, first, count, length, size;
    char name[MPI_MAX_PROCESSOR_NAME] = "", other[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
    MPI_Comm_rank(shared, &first);
    MPI_Comm_size(shared, &size);
    first = first == 0;
    MPI_Get_processor_name(name, &length);
    strcpy(other, name);
    MPI_Bcast(other, sizeof other, MPI_CHAR, 0, shared);
    OK(!strcmp(name, other));
    MPI_Allreduce(&first, &count, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&shared);
    return count;
}

/* Elements that do not commute: 2x2 matrices modulo a prime. */
static void times(void *in, void *inout, int *len, MPI_Datatype *type) {
    long *a = in, *b = inout, p = 1000003;
    for (int i = 0; i < *len; i++, a += 4, b += 4) {
        long c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        for (int k = 0; k < 4; k++) b[k] = c[k] % p;
    }
}

/* Collectives of all sorts, each with a result that is known. */
static void collectives(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Barrier(comm);
    for (int round = 0; round < 3; round++) {
        int one = rank + round, sum = -1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        EQ(sum, size * (size - 1) / 2 + size * round);
        for (int root = 0; root < size; root++) {
            long word = rank == root ? 1000 * round + root : -1;
            MPI_Bcast(&word, 1, MPI_LONG, root, comm);
            EQ(word, 1000 * round + root);
            int max = -1;
            MPI_Reduce(&rank, &max, 1, MPI_INT, MPI_MAX, root, comm);
            EQ(max, rank == root ? size - 1 : -1);
        }
    }
    int lengths[] = {1, 500, 40000, BIG};
    for (int l = 0; l < 4; l++) {
        int n = lengths[l], root = l % size;
        char *buf = malloc(n);
        t_fill(buf, n, rank == root ? root : 99, l);
        MPI_Bcast(buf, n, MPI_CHAR, root, comm);
        EQ(t_wrong(buf, n, root, l), -1);
        free(buf);
        if (n > 100000) n = 100000;
        char *mine = malloc(n), *all = malloc((size_t)n * size);
        t_fill(mine, n, rank, l);
        MPI_Allgather(mine, n, MPI_CHAR, all, n, MPI_CHAR, comm);
        for (int r = 0; r < size; r++) EQ(t_wrong(all + (size_t)r * n, n, r, l), -1);
        int each = n / size + 1;
        char *to = malloc((size_t)each * size), *from = malloc((size_t)each * size);
        for (int r = 0; r < size; r++) t_fill(to + (size_t)r * each, each, rank, r);
        MPI_Alltoall(to, each, MPI_CHAR, from, each, MPI_CHAR, comm);
        for (int r = 0; r < size; r++) EQ(t_wrong(from + (size_t)r * each, each, r, rank), -1);
        MPI_Gather(mine, n, MPI_CHAR, all, n, MPI_CHAR, root, comm);
        if (rank == root) for (int r = 0; r < size; r++) EQ(t_wrong(all + (size_t)r * n, n, r, l), -1);
        memset(mine, 0, n);
        MPI_Scatter(all, n, MPI_CHAR, mine, n, MPI_CHAR, root, comm);
        EQ(t_wrong(mine, n, rank, l), -1);
        int ints = n / 4 + 1, *a = malloc(4 * ints), *b = malloc(4 * ints);
        for (int i = 0; i < ints; i++) a[i] = rank + i;
        MPI_Allreduce(a, b, ints, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < ints; i += 97) EQ(b[i], size * (size - 1) / 2 + size * i);
        MPI_Scan(a, b, ints, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < ints; i += 97) EQ(b[i], rank * (rank + 1) / 2 + (rank + 1) * i);
        free(mine), free(all), free(to), free(from), free(a), free(b);
    }
    MPI_Datatype matrix;
    MPI_Op op;
    MPI_Type_contiguous(4, MPI_LONG, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(times, 0, &op);
    long mine[4] = {rank + 2, 3, 1, rank + 1}, product[4], expected[4] = {1, 0, 0, 1};
    MPI_Allreduce(mine, product, 1, matrix, op, comm);
    for (int r = size - 1, len = 1; r >= 0; r--) {
        long factor[4] = {r + 2, 3, 1, r + 1};
        times(factor, expected, &len, NULL); /* expected = factor * expected */
    }
    OK(!memcmp(product, expected, sizeof product));
    MPI_Op_free(&op);
    MPI_Type_free(&matrix);
    MPI_Comm dup, half;
    MPI_Comm_dup(comm, &dup);
    MPI_Comm_split(dup, rank % 2, -rank, &half);
    int sum, members, place;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
    MPI_Comm_size(half, &members);
    MPI_Comm_rank(half, &place);
    EQ(sum, members * (members - 1) + (rank % 2) * members);
    EQ(place, members - 1 - rank / 2);
    MPI_Comm_free(&half);
    MPI_Comm_free(&dup);
}

/* Each puts, gets and adds at all others. */
static void windows(MPI_Comm comm) {
    int rank, size;
    long *base;
    MPI_Win win;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Win_allocate((size + 1) * sizeof *base, sizeof *base, MPI_INFO_NULL, comm, &base, &win);
    for (int i = 0; i <= size; i++) base[i] = 0;
    MPI_Win_fence(0, win);
    for (int r = 0; r < size; r++) {
        long word = 100 * rank + r, more = rank + 1;
        MPI_Put(&word, 1, MPI_LONG, r, rank, 1, MPI_LONG, win);
        MPI_Accumulate(&more, 1, MPI_LONG, r, size, 1, MPI_LONG, MPI_SUM, win);
        MPI_Win_fence(0, win);
    }
    for (int r = 0; r < size; r++) EQ(base[r], 100 * r + rank);
    EQ(base[size], size * (size + 1) / 2);
    MPI_Win_fence(0, win);
    for (int r = 0; r < size; r++) {
        long found = -1, one = 1, old;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, win);
        MPI_Get(&found, 1, MPI_LONG, r, rank, 1, MPI_LONG, win);
        MPI_Fetch_and_op(&one, &old, MPI_LONG, r, size, MPI_SUM, win);
        MPI_Win_unlock(r, win);
        EQ(found, 100 * rank + r);
    }
    MPI_Barrier(comm);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    EQ(base[size], size * (size + 1) / 2 + size);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

/* What parents and children do together; `inter` joins them. */
static void together(MPI_Comm inter, int high) {
    int me, size, remote, merged_size, nodes;
    MPI_Comm all;
    MPI_Comm_rank(inter, &me);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    PART("messages between parents and children");
    int lengths[] = {0, 8, 3000, 20000, BIG};
    for (int l = 0; l < 5; l++) {
        int n = lengths[l], count = 0;
        char *in = malloc((size_t)remote * n + 1), *out = malloc(n + 1);
        MPI_Request *requests = malloc(2 * remote * sizeof *requests);
        t_fill(out, n, me + 40 * high, l);
        for (int r = 0; r < remote; r++) MPI_Irecv(in + (size_t)r * n, n, MPI_CHAR, r, l, inter, &requests[count++]);
        for (int r = 0; r < remote; r++) {
            if ((r + l) % 2) MPI_Issend(out, n, MPI_CHAR, r, l, inter, &requests[count++]);
            else MPI_Isend(out, n, MPI_CHAR, r, l, inter, &requests[count++]);
        }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        for (int r = 0; r < remote; r++) EQ(t_wrong(in + (size_t)r * n, n, r + 40 * !high, l), -1);
        free(in), free(out), free(requests);
    }
    PART("collectives between parents and children");
    int mine = me + 1, theirs = 0;
    MPI_Allreduce(&mine, &theirs, 1, MPI_INT, MPI_SUM, inter);
    EQ(theirs, remote * (remote + 1) / 2);
    char *block = malloc(BIG);
    t_fill(block, BIG, 7, high);
    MPI_Bcast(block, BIG, MPI_CHAR, high ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    EQ(t_wrong(block, BIG, 7, 0), -1);
    free(block);
    MPI_Barrier(inter);
    PART("merged");
    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_size(all, &merged_size);
    EQ(merged_size, size + remote);
    collectives(all);
    nodes = nodes_of(all);
    OK(nodes >= 1 && nodes <= atoi(nodes_text));
    /* Windows over nodes are refused where the kernel would refuse single copy. */
    if (!getenv("VMPI_SINGLE_COPY")) windows(all);
    MPI_Barrier(all);
    MPI_Comm_free(&all);
}

static void child(int argc, char **argv, MPI_Comm parent) {
    int depth = atoi(argv[2]), size = t_size, nodes = nodes_of(MPI_COMM_WORLD), *appnum, set;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &set);
    int word[4] = {t_rank, nodes, set ? *appnum : -1, t_size};
    MPI_Send(word, 4, MPI_INT, 0, 900, parent);
    PART("the children's world");
    collectives(MPI_COMM_WORLD);
    together(parent, 1);
    if (depth > 0) {
        char level[20], *args[] = {argv[1], level, NULL};
        sprintf(level, "%d", depth - 1);
        MPI_Comm below;
        MPI_Comm_spawn(argv[0], args, 2, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &below, MPI_ERRCODES_IGNORE);
        if (t_rank == 0) for (int c = 0; c < 2; c++) MPI_Recv(word, 4, MPI_INT, c, 900, below, MPI_STATUS_IGNORE);
        together(below, 0);
        MPI_Barrier(below);
        MPI_Comm_disconnect(&below);
    }
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
}

/* Hear of all children what they are; on how many nodes they live. */
static int hear(MPI_Comm inter, int count) {
    int word[4], me, nodes = 0;
    MPI_Comm_rank(inter, &me);
    for (int c = 0; me == 0 && c < count; c++) {
        MPI_Recv(word, 4, MPI_INT, c, 900, inter, MPI_STATUS_IGNORE);
        EQ(word[0], c);
        EQ(word[3], count);
        nodes = word[1];
    }
    return nodes;
}

int main(int argc, char **argv) {
    MPI_Comm parent, inter, second;
    t_begin(&argc, &argv);
    if (argc > 1) nodes_text = argv[1];
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(argc, argv, parent);
        MPI_Finalize();
        return t_failures != 0;
    }
    int nodes = atoi(nodes_text), *universe, set;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &set);
    OK(set && *universe >= t_size && *universe >= nodes);
    char *args[] = {(char *)nodes_text, "1", NULL}, *flat[] = {(char *)nodes_text, "0", NULL};
    int codes[MANY + 1];
    for (int root = 0; root < t_size; root += t_size > 1 ? t_size - 1 : 1) {
        for (int i = 0; i <= MANY; i++) codes[i] = -7;
        EQ(MPI_Comm_spawn(argv[0], args, MANY, MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter, codes), MPI_SUCCESS);
        for (int i = 0; i < MANY; i++) EQ(codes[i], MPI_SUCCESS);
        EQ(codes[MANY], -7);
        int found = hear(inter, MANY);
        /* More than there are nodes, so they are on all. */
        if (t_rank == 0) EQ(found, nodes);
        together(inter, 0);
        MPI_Barrier(inter);
        MPI_Comm_disconnect(&inter);
    }
    PART("each rank by itself, all at once");
    EQ(MPI_Comm_spawn(argv[0], flat, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE), MPI_SUCCESS);
    hear(inter, 2);
    EQ(MPI_Comm_spawn(argv[0], flat, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &second, MPI_ERRCODES_IGNORE), MPI_SUCCESS);
    hear(second, 1);
    together(inter, 0);
    together(second, 0);
    MPI_Barrier(second);
    MPI_Comm_disconnect(&second);
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
    say("done");
    return t_end();
}
