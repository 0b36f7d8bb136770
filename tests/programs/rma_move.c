/* Put and get: every way to make a window, every way to synchronise, derived types on both sides, displacement units of
 * each target's own, zero counts, MPI_PROC_NULL, request-based operations, large transfers. */
#include "t.h"
enum { N = 64, BIG = 300000 };
static MPI_Comm w;
static MPI_Win win;
static int *base, unit, right, left, dynamic;
static MPI_Aint *bases;

enum { CREATE, ALLOCATE, SHARED, DYNAMIC, KINDS };
static const char *kinds[] = {"create", "allocate", "allocate_shared", "dynamic"};
enum { FENCE, PSCW, LOCK, LOCK_ALL, WAYS };

static void make(int kind) {
    MPI_Aint bytes = BIG * sizeof(int), at;
    unit = 1 << (t_rank % 3); /* each rank its own */
    dynamic = kind == DYNAMIC;
    if (kind == CREATE) {
        base = malloc(bytes);
        MPI_Win_create(base, bytes, unit, MPI_INFO_NULL, w, &win);
    } else if (kind == ALLOCATE) {
        MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, w, &base, &win);
    } else if (kind == SHARED) {
        MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, w, &base, &win);
    } else {
        base = malloc(bytes);
        MPI_Win_create_dynamic(MPI_INFO_NULL, w, &win);
        MPI_Win_attach(win, base, bytes);
    }
    MPI_Get_address(base, &at);
    MPI_Allgather(&at, 1, MPI_AINT, bases, 1, MPI_AINT, w);
    for (int i = 0; i < BIG; i++) base[i] = t_rank * 1000000 + i;
    MPI_Barrier(w);
}

static void unmake(int kind) {
    MPI_Barrier(w);
    if (kind == DYNAMIC) MPI_Win_detach(win, base);
    MPI_Win_free(&win);
    OK(win == MPI_WIN_NULL);
    if (kind == CREATE || kind == DYNAMIC) free(base);
}

/* Displacement of element `i` at `target`. */
static MPI_Aint at(int target, int i) {
    return dynamic ? bases[target] + i * (int)sizeof(int) : i * (int)sizeof(int) / (1 << (target % 3));
}

static MPI_Group group_of(int rank) {
    MPI_Group all, one;
    MPI_Comm_group(w, &all);
    MPI_Group_incl(all, 1, &rank, &one);
    MPI_Group_free(&all);
    return one;
}

/* Open `target` for access; this rank is the target of `origin`. */
static void begin(int way, int target, int origin) {
    if (way == LOCK || way == LOCK_ALL) MPI_Barrier(w); /* a lock tells nobody that others have looked */
    if (way == FENCE) MPI_Win_fence(0, win);
    if (way == PSCW) {
        MPI_Group from = group_of(origin), to = group_of(target);
        MPI_Win_post(from, 0, win);
        MPI_Win_start(to, 0, win);
        MPI_Group_free(&from);
        MPI_Group_free(&to);
    }
    if (way == LOCK) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    if (way == LOCK_ALL) MPI_Win_lock_all(0, win);
}

/* After this what was moved is there, at both ends. */
static void end(int way, int target) {
    if (way == FENCE) MPI_Win_fence(0, win);
    if (way == PSCW) {
        MPI_Win_complete(win);
        MPI_Win_wait(win);
    }
    if (way == LOCK) MPI_Win_unlock(target, win);
    if (way == LOCK_ALL) MPI_Win_unlock_all(win);
    if (way == LOCK || way == LOCK_ALL) {
        MPI_Barrier(w);
        MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win); /* see what others put */
        MPI_Win_unlock(t_rank, win);
    }
}

static void moves(int kind, int way) {
    int in[N], out[N], wrong = 0;
    MPI_Datatype every, some, reversed;
    PART(kinds[kind]);
    make(kind);
    for (int i = 0; i < N; i++) out[i] = t_rank * 100 + i, in[i] = -1;

    /* Contiguous to and from the right neighbour. */
    begin(way, right, left);
    MPI_Put(out, N, MPI_INT, right, at(right, 0), N, MPI_INT, win);
    end(way, right);
    for (int i = 0; i < N; i++) wrong += base[i] != left * 100 + i;
    EQ(wrong, 0);
    begin(way, right, left);
    MPI_Get(in, N, MPI_INT, right, at(right, N), N, MPI_INT, win);
    end(way, right);
    for (int i = 0; i < N; i++) wrong += in[i] != right * 1000000 + N + i;
    EQ(wrong, 0);

    /* Every second element here, every third there; indexed backwards; bytes against integers. */
    MPI_Type_vector(16, 1, 2, MPI_INT, &every);
    MPI_Type_vector(16, 1, 3, MPI_INT, &some);
    int displs[16];
    for (int i = 0; i < 16; i++) displs[i] = 15 - i;
    MPI_Type_create_indexed_block(16, 1, displs, MPI_INT, &reversed);
    MPI_Type_commit(&every), MPI_Type_commit(&some), MPI_Type_commit(&reversed);
    begin(way, right, left);
    MPI_Put(out, 1, every, right, at(right, 200), 1, some, win);
    MPI_Put(out, 16, MPI_INT, right, at(right, 300), 1, reversed, win);
    MPI_Put(out, 1, reversed, right, at(right, 400), 16, MPI_INT, win);
    end(way, right);
    for (int i = 0; i < 16; i++) {
        wrong += base[200 + 3 * i] != left * 100 + 2 * i;
        if (i < 15) wrong += base[200 + 3 * i + 1] != t_rank * 1000000 + 200 + 3 * i + 1; /* not touched */
        wrong += base[300 + 15 - i] != left * 100 + i;
        wrong += base[400 + i] != left * 100 + 15 - i;
    }
    EQ(wrong, 0);
    for (int i = 0; i < N; i++) in[i] = -1;
    begin(way, right, left);
    MPI_Get(in, 1, every, right, at(right, 500), 1, some, win);
    MPI_Get(in + 40, 16, MPI_INT, right, at(right, 600), 1, reversed, win);
    end(way, right);
    for (int i = 0; i < 16; i++) {
        wrong += in[2 * i] != right * 1000000 + 500 + 3 * i || (i < 15 && in[2 * i + 1] != -1);
        wrong += in[40 + i] != right * 1000000 + 600 + 15 - i;
    }
    EQ(wrong, 0);

    /* Nothing: zero counts, MPI_PROC_NULL; and to oneself. */
    begin(way, right, left);
    MPI_Put(out, 0, MPI_INT, right, at(right, 0), 0, MPI_INT, win);
    MPI_Put(out, N, MPI_INT, MPI_PROC_NULL, 0, N, MPI_INT, win);
    MPI_Get(in, N, MPI_INT, MPI_PROC_NULL, 0, N, MPI_INT, win);
    if (way == FENCE || way == LOCK_ALL) MPI_Put(out, 3, MPI_INT, t_rank, at(t_rank, 700), 3, MPI_INT, win);
    end(way, right);
    if (way == FENCE || way == LOCK_ALL)
        for (int i = 0; i < 3; i++) wrong += base[700 + i] != t_rank * 100 + i;
    EQ(wrong, 0);

    /* Large: contiguous, and scattered in small pieces on both sides. */
    int *large = malloc(BIG * sizeof(int));
    for (int i = 0; i < BIG; i++) large[i] = t_rank * 7 + i;
    begin(way, right, left);
    MPI_Put(large, BIG, MPI_INT, right, at(right, 0), BIG, MPI_INT, win);
    end(way, right);
    for (int i = 0; i < BIG; i++) wrong += base[i] != left * 7 + i;
    EQ(wrong, 0);
    MPI_Datatype rare, dense;
    MPI_Type_vector(BIG / 3, 1, 3, MPI_INT, &rare);
    MPI_Type_vector(BIG / 6, 2, 5, MPI_INT, &dense);
    MPI_Type_commit(&rare), MPI_Type_commit(&dense);
    for (int i = 0; i < BIG; i++) large[i] = -5 - i;
    begin(way, right, left);
    MPI_Put(large, 1, rare, right, at(right, 0), 1, dense, win);
    end(way, right);
    for (int i = 0; i < BIG / 3; i++) wrong += base[i / 2 * 5 + i % 2] != -5 - 3 * i;
    EQ(wrong, 0);
    for (int i = 0; i < BIG; i++) large[i] = 1;
    begin(way, right, left);
    MPI_Get(large, 1, rare, right, at(right, 0), 1, dense, win);
    end(way, right);
    for (int i = 0; i < BIG / 3; i++) wrong += large[3 * i] != -5 - 3 * i || large[3 * i + 1] != 1;
    EQ(wrong, 0);
    free(large);
    MPI_Type_free(&rare), MPI_Type_free(&dense);

    /* Requests, in passive epochs. */
    if (way == LOCK || way == LOCK_ALL) {
        MPI_Request q[4];
        MPI_Status st[4];
        begin(way, right, left);
        MPI_Rput(out, N, MPI_INT, right, at(right, 1000), N, MPI_INT, win, &q[0]);
        MPI_Rput(out, 0, MPI_INT, right, at(right, 1000), 0, MPI_INT, win, &q[1]);
        MPI_Rput(out, N, MPI_INT, MPI_PROC_NULL, 0, N, MPI_INT, win, &q[2]);
        MPI_Rget(in, N, MPI_INT, MPI_PROC_NULL, 0, N, MPI_INT, win, &q[3]);
        MPI_Waitall(4, q, st);
        MPI_Win_flush(right, win);
        MPI_Rget(in, N, MPI_INT, right, at(right, 1000), N, MPI_INT, win, &q[0]);
        MPI_Wait(&q[0], &st[0]);
        for (int i = 0; i < N; i++) wrong += in[i] != out[i];
        EQ(wrong, 0);
        MPI_Win_flush_local(right, win);
        MPI_Win_flush_all(win);
        MPI_Win_flush_local_all(win);
        end(way, right);
        for (int i = 0; i < N; i++) wrong += base[1000 + i] != left * 100 + i;
        EQ(wrong, 0);
    }
    MPI_Type_free(&every), MPI_Type_free(&some), MPI_Type_free(&reversed);
    unmake(kind);
    say("%s %d: %d wrong", kinds[kind], way, wrong);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &w);
    right = (t_rank + 1) % t_size, left = (t_rank + t_size - 1) % t_size;
    bases = malloc(t_size * sizeof *bases);
    /* With "apart" the ranks need not share memory. */
    int apart = argc > 1 && !strcmp(argv[1], "apart");
    for (int kind = 0; kind < KINDS; kind++)
        for (int way = 0; way < WAYS; way++)
            if (kind != SHARED || !apart) moves(kind, way);

    PART("everybody to everybody, many windows at once, made over a part of the ranks in another order");
    MPI_Comm half;
    MPI_Comm_split(w, t_rank % 2, -t_rank, &half);
    /* Open MPI 4.1 gives the windows of both halves the same files: there one half comes after the other. */
    int by_turns = !getenv("VMPI_JOBID");
    if (by_turns && t_rank % 2) MPI_Barrier(w);
    int me, n;
    MPI_Comm_rank(half, &me), MPI_Comm_size(half, &n);
    MPI_Win wins[5];
    int *mem[5], wrong = 0;
    for (int k = 0; k < 5; k++) {
        MPI_Win_allocate(n * sizeof(int), sizeof(int), MPI_INFO_NULL, half, &mem[k], &wins[k]);
        MPI_Win_fence(MPI_MODE_NOPRECEDE, wins[k]);
    }
    for (int k = 4; k >= 0; k--)
        for (int r = 0; r < n; r++) {
            static int values[5][64];
            int *v = &values[k][r];
            *v = me * 100 + r * 10 + k;
            MPI_Put(v, 1, MPI_INT, r, me, 1, MPI_INT, wins[k]);
        }
    for (int k = 0; k < 5; k++) MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, wins[k]);
    for (int k = 0; k < 5; k++)
        for (int r = 0; r < n; r++) wrong += mem[k][r] != r * 100 + me * 10 + k;
    for (int k = 0; k < 5; k++) MPI_Win_free(&wins[k]);
    MPI_Comm_free(&half);
    EQ(wrong, 0);
    if (by_turns && t_rank % 2 == 0) MPI_Barrier(w);

    PART("members without memory");
    int *few, value = 77;
    MPI_Win_allocate(t_rank == 0 ? 8 : 0, 4, MPI_INFO_NULL, w, &few, &win);
    if (t_rank == 0) few[0] = few[1] = 5;
    MPI_Win_fence(0, win);
    if (t_rank == t_size - 1) MPI_Put(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    if (t_rank == 0) OK(few[0] == 5 && few[1] == 77);
    MPI_Win_free(&win);
    say("many windows: %d wrong", wrong);
    MPI_Comm_free(&w);
    return t_end();
}
