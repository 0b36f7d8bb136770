/* Accumulation: every operation on every kind of type, element by element atomic under contention, fetching forms,
 * derived types, pairs, MPI_REPLACE and MPI_NO_OP, compare and swap. */
#include "t.h"
static MPI_Comm w;
static MPI_Win win;
enum { BYTES = 65536 }; /* MPICH 4.0 misplaces small windows */

/* Each rank accumulates into rank 0; all operations here give the same in any order. */
#define OPS(TYPE, mpi, op, first, mine, expected) do { \
        TYPE *m, v[4], r[4], all[4]; \
        MPI_Win_allocate(BYTES, sizeof(TYPE), MPI_INFO_NULL, w, &m, &win); \
        for (int i = 0; i < 4; i++) m[i] = (TYPE)(first), v[i] = (TYPE)(mine); \
        MPI_Win_fence(0, win); \
        MPI_Accumulate(v, 4, mpi, 0, 0, 4, mpi, op, win); \
        MPI_Win_fence(0, win); \
        MPI_Get(r, 4, mpi, 0, 0, 4, mpi, win); \
        MPI_Win_fence(0, win); \
        for (int i = 0; i < 4; i++) all[i] = (TYPE)(expected); \
        OK(!memcmp(r, all, sizeof all)); \
        MPI_Win_free(&win); \
    } while (0)

#define INTEGERS(TYPE, mpi) do { \
        PART(#mpi); \
        int n = t_size, sum = 0, prod = 3, and = 0x7f, or = 1, xor = 5; \
        for (int r = 0; r < n; r++) sum += r + 1, prod *= 2, and &= 0x70 | r, or |= r, xor ^= r; \
        OPS(TYPE, mpi, MPI_SUM, 5, t_rank + 1, 5 + sum); \
        OPS(TYPE, mpi, MPI_PROD, 3, 2, prod); \
        OPS(TYPE, mpi, MPI_MAX, 2, t_rank + 3, n + 2); \
        OPS(TYPE, mpi, MPI_MIN, 90, 50 - t_rank, 51 - n); \
        OPS(TYPE, mpi, MPI_BAND, 0x7f, 0x70 | t_rank, and); \
        OPS(TYPE, mpi, MPI_BOR, 1, t_rank, or); \
        OPS(TYPE, mpi, MPI_BXOR, 5, t_rank, xor); \
        OPS(TYPE, mpi, MPI_LAND, 1, t_rank != 1, n < 2); \
        OPS(TYPE, mpi, MPI_LOR, 0, t_rank == n - 1, 1); \
        OPS(TYPE, mpi, MPI_LXOR, 1, 1, (n + 1) % 2); \
        OPS(TYPE, mpi, MPI_REPLACE, 1, 9, 9); \
    } while (0)

#define REALS(TYPE, mpi) do { \
        PART(#mpi); \
        int n = t_size, sum = 0, prod = 3; \
        for (int r = 0; r < n; r++) sum += r + 1, prod *= 2; \
        OPS(TYPE, mpi, MPI_SUM, 5, t_rank + 1, 5 + sum); \
        OPS(TYPE, mpi, MPI_PROD, 3, 2, prod); \
        OPS(TYPE, mpi, MPI_MAX, -2, t_rank + 3, n + 2); \
        OPS(TYPE, mpi, MPI_MIN, 90, 50 - t_rank, 51 - n); \
        OPS(TYPE, mpi, MPI_REPLACE, 1, 9, 9); \
    } while (0)

static void pairs(void) {
    PART("pairs");
    struct { short v; int i; } *m, mine = {(short)(10 + t_rank % 3), t_rank}, got;
    struct { double v; int i; } *d, dmine = {t_rank % 2 ? 0.5 : -0.5, t_rank}, dgot;
    MPI_Win_allocate(BYTES, sizeof *m, MPI_INFO_NULL, w, &m, &win);
    m[0].v = m[1].v = 10, m[0].i = m[1].i = 99;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&mine, 1, MPI_SHORT_INT, 0, 0, 1, MPI_SHORT_INT, MPI_MAXLOC, win);
    MPI_Accumulate(&mine, 1, MPI_SHORT_INT, 0, 1, 1, MPI_SHORT_INT, MPI_MINLOC, win);
    MPI_Win_fence(0, win);
    MPI_Get(&got, 1, MPI_SHORT_INT, 0, 0, 1, MPI_SHORT_INT, win);
    MPI_Win_fence(0, win);
    int best = t_size > 2 ? 2 : t_size - 1;
    OK(got.v == 10 + best && got.i == best);
    MPI_Get(&got, 1, MPI_SHORT_INT, 0, 1, 1, MPI_SHORT_INT, win);
    MPI_Win_fence(0, win);
    OK(got.v == 10 && got.i == 0);
    MPI_Win_free(&win);
    MPI_Win_allocate(BYTES, sizeof *d, MPI_INFO_NULL, w, &d, &win);
    d->v = 100, d->i = 99;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&dmine, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MINLOC, win);
    MPI_Win_fence(0, win);
    MPI_Get(&dgot, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, win);
    MPI_Win_fence(0, win);
    OK(dgot.v == -0.5 && dgot.i == 0);
    MPI_Win_free(&win);
}

/* Memory of rank 0 made in one of two ways; all contend for it. */
static void contention(int own) {
    enum { ROUNDS = 300, WIDE = 500 };
    PART(own ? "contention, own memory" : "contention, allocated memory");
    long *m, one = 1, old, sum = 0, last = -1;
    MPI_Aint bytes = (4 + WIDE) * sizeof(long);
    if (own) {
        m = malloc(bytes);
        MPI_Win_create(m, bytes, sizeof(long), MPI_INFO_NULL, w, &win);
    } else MPI_Win_allocate(BYTES, sizeof(long), MPI_INFO_NULL, w, &m, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_rank, 0, win);
    memset(m, 0, bytes);
    MPI_Win_unlock(t_rank, win);
    MPI_Barrier(w);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
        OK(old > last); /* the counter only grows */
        last = old, sum += old;
    }
    /* The values fetched by all are 0, 1, 2, ... each once. */
    long total = 0, all = (long)ROUNDS * t_size;
    MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, w);
    EQ(total, all * (all - 1) / 2);
    /* A lock made of compare and swap, a counter under it that is read and written back. */
#ifdef OPEN_MPI
    int swaps = getenv("VMPI_JOBID") ? 40 : 0; /* Open MPI 4.1 crashes in it */
#else
    int swaps = 40;
#endif
    for (int i = 0; i < swaps; i++) {
        long free_ = 0, me = t_rank + 1, seen, value;
        do {
            MPI_Compare_and_swap(&me, &free_, &seen, MPI_LONG, 0, 1, win);
            MPI_Win_flush(0, win);
        } while (seen != 0);
        MPI_Get(&value, 1, MPI_LONG, 0, 2, 1, MPI_LONG, win);
        MPI_Win_flush(0, win);
        value++;
        MPI_Put(&value, 1, MPI_LONG, 0, 2, 1, MPI_LONG, win);
        MPI_Win_flush(0, win);
        MPI_Accumulate(&free_, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_REPLACE, win);
        MPI_Win_flush(0, win);
    }
    /* Wide ones, each element for itself. */
    long wide[WIDE], before[WIDE];
    for (int i = 0; i < WIDE; i++) wide[i] = i + t_rank;
    for (int k = 0; k < 20; k++) {
        if (k % 2) MPI_Accumulate(wide, WIDE, MPI_LONG, 0, 4, WIDE, MPI_LONG, MPI_SUM, win);
        else MPI_Get_accumulate(wide, WIDE, MPI_LONG, before, WIDE, MPI_LONG, 0, 4, WIDE, MPI_LONG, MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(w);
    if (t_rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        EQ(m[0], all);
        EQ(m[1], 0);
        EQ(m[2], swaps * t_size);
        int wrong = 0;
        for (int i = 0; i < WIDE; i++) wrong += m[4 + i] != 20L * (i * t_size + t_size * (t_size - 1) / 2);
        EQ(wrong, 0);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
    if (own) free(m);
}

static void fetching(void) {
    PART("get_accumulate and derived types");
    enum { N = 20 };
    int *m, v[N], old[N], wrong = 0, target = (t_rank + 1) % t_size;
    MPI_Datatype every, pair;
    MPI_Type_vector(N / 2, 1, 2, MPI_INT, &every);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&every), MPI_Type_commit(&pair);
    MPI_Win_allocate(BYTES, sizeof(int), MPI_INFO_NULL, w, &m, &win);
    for (int i = 0; i < N; i++) m[i] = 100 * t_rank + i, v[i] = i, old[i] = -1;
    MPI_Win_fence(0, win);
    MPI_Get_accumulate(v, N / 2, MPI_INT, old, 1, every, target, 0, 1, every, MPI_SUM, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < N; i++) {
        wrong += m[i] != 100 * t_rank + i + (i % 2 ? 0 : i / 2);
        wrong += old[i] != (i % 2 ? -1 : 100 * target + i);
    }
    EQ(wrong, 0);
    MPI_Win_fence(0, win);
    MPI_Accumulate(v, N / 2, pair, target, 0, N / 2, pair, MPI_REPLACE, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < N; i++) wrong += m[i] != i;
    EQ(wrong, 0);
    /* MPI_NO_OP reads; it has no operand. */
    for (int i = 0; i < N; i++) old[i] = -1;
    MPI_Win_fence(0, win);
    MPI_Get_accumulate(NULL, 0, MPI_INT, old, N, MPI_INT, target, 0, N, MPI_INT, MPI_NO_OP, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < N; i++) wrong += old[i] != i;
    EQ(wrong, 0);
    int last = -1, ignored = 5;
    MPI_Fetch_and_op(&ignored, &last, MPI_INT, target, 7, MPI_NO_OP, win);
    MPI_Win_fence(0, win);
    EQ(last, 7);
    /* MPI_PROC_NULL and nothing. */
    MPI_Accumulate(v, N, MPI_INT, MPI_PROC_NULL, 0, N, MPI_INT, MPI_SUM, win);
    MPI_Get_accumulate(v, N, MPI_INT, old, N, MPI_INT, MPI_PROC_NULL, 0, N, MPI_INT, MPI_SUM, win);
    MPI_Fetch_and_op(v, old, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win);
    MPI_Compare_and_swap(v, v, old, MPI_INT, MPI_PROC_NULL, 0, win);
    MPI_Accumulate(v, 0, MPI_INT, target, 0, 0, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < N; i++) wrong += m[i] != i || old[i] != i;
    EQ(wrong, 0);
    MPI_Win_free(&win);

    PART("request-based");
    MPI_Win_allocate(BYTES, sizeof(int), MPI_INFO_NULL, w, &m, &win);
    memset(m, 0, N * sizeof(int));
    MPI_Barrier(w);
    MPI_Win_lock_all(0, win);
    MPI_Request q[2];
    MPI_Raccumulate(v, N, MPI_INT, target, 0, N, MPI_INT, MPI_SUM, win, &q[0]);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(target, win);
    MPI_Rget_accumulate(v, N, MPI_INT, old, N, MPI_INT, target, 0, N, MPI_INT, MPI_SUM, win, &q[1]);
    MPI_Wait(&q[1], MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++) wrong += old[i] != i;
    MPI_Win_unlock_all(win);
    MPI_Barrier(w);
    MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win);
    for (int i = 0; i < N; i++) wrong += m[i] != 2 * i;
    MPI_Win_unlock(t_rank, win);
    EQ(wrong, 0);
    MPI_Win_free(&win);
    MPI_Type_free(&every), MPI_Type_free(&pair);
}

/* Compare and swap on each size. */
#define SWAP(TYPE, mpi) do { \
        TYPE *m, a = 3, b = 4, got = 0; \
        int next = (t_rank + 1) % t_size; \
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, w, &m, &win); \
        *m = 3; \
        MPI_Win_fence(0, win); \
        MPI_Compare_and_swap(&b, &a, &got, mpi, next, 0, win); \
        MPI_Win_fence(0, win); \
        OK(*m == 4 && got == 3); \
        MPI_Win_fence(0, win); \
        MPI_Compare_and_swap(&a, &a, &got, mpi, next, 0, win); \
        MPI_Win_fence(0, win); \
        OK(*m == 4 && got == 4); \
        MPI_Win_free(&win); \
    } while (0)

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &w);
    INTEGERS(signed char, MPI_SIGNED_CHAR);
    INTEGERS(short, MPI_SHORT);
    INTEGERS(int, MPI_INT);
    INTEGERS(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    INTEGERS(uint8_t, MPI_UINT8_T);
    INTEGERS(int64_t, MPI_INT64_T);
    REALS(float, MPI_FLOAT);
    REALS(double, MPI_DOUBLE);
    OPS(unsigned char, MPI_BYTE, MPI_REPLACE, 1, 9, 9);
    OPS(char, MPI_CHAR, MPI_REPLACE, 1, 9, 9);
    double sum = 2;
    for (int r = 0; r < t_size; r++) sum += r;
    OPS(_Complex double, MPI_C_DOUBLE_COMPLEX, MPI_SUM, 2, t_rank, sum);
    pairs();
    fetching();
    if (getenv("VMPI_JOBID")) { /* Open MPI 4.1 crashes */
        SWAP(int, MPI_INT);
        SWAP(long, MPI_LONG);
        SWAP(signed char, MPI_SIGNED_CHAR);
        SWAP(short, MPI_SHORT);
        SWAP(unsigned char, MPI_BYTE);
        SWAP(MPI_Aint, MPI_AINT);
    }
    contention(0);
    contention(1);
    say("accumulated");
    MPI_Comm_free(&w);
    return t_end();
}
