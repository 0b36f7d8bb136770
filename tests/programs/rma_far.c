/* One-sided communication that needs no target: rank 0 works in the memory of the last rank, which computes until it sees the end of that
 * in its memory. Then all ranks at once: counters, locks made of compare and swap and of MPI_Win_lock, large and scattered transfers,
 * operations on elements with padding, posts and starts round about. Meant for ranks on several nodes; right everywhere. */
#include "t.h"
#include <time.h>
enum { ROUNDS = 20, BIG = 24 << 20 };
static MPI_Comm w;
static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static int last, me, n;

/* The last rank is outside MPI until rank 0 has put `ROUNDS` into its flag. */
static void a_target_that_computes(int kind) {
    long *base, in = 0, one = 1, old = 0, zero = 0, got[2];
    MPI_Win win;
    if (kind == 0) MPI_Win_allocate(8 * sizeof(long), sizeof(long), MPI_INFO_NULL, w, &base, &win);
    else base = malloc(8 * sizeof(long)), MPI_Win_create(base, 8 * sizeof(long), sizeof(long), MPI_INFO_NULL, w, &win);
    for (int i = 0; i < 8; i++) base[i] = 0;
    int real = !getenv("VMPI_JOBID"), missed = 0;
    MPI_Barrier(w);
    if (me == last) {
        /* The peers' targets may have to call MPI: they do not wait here. */
        double until = seconds() + (real ? 0 : 30);
        volatile long *flag = &base[7];
        while (*flag != ROUNDS && seconds() < until) {}
        STRICT(*flag == ROUNDS);
    } else if (me == 0) {
        for (long i = 1; i <= ROUNDS; i++) {
            MPI_Win_lock(i % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, last, 0, win);
            MPI_Put(&i, 1, MPI_LONG, last, 0, 1, MPI_LONG, win);
            MPI_Win_flush(last, win);
            MPI_Get(&in, 1, MPI_LONG, last, 0, 1, MPI_LONG, win);
            MPI_Accumulate(&one, 1, MPI_LONG, last, 1, 1, MPI_LONG, MPI_SUM, win);
            MPI_Fetch_and_op(&one, &old, MPI_LONG, last, 2, MPI_SUM, win);
            MPI_Win_flush(last, win);
            missed += in != i || old != i - 1;
            MPI_Compare_and_swap(&one, &zero, &old, MPI_LONG, last, 3, win);
            MPI_Get_accumulate(&one, 1, MPI_LONG, got, 2, MPI_LONG, last, 1, 2, MPI_LONG, MPI_NO_OP, win);
            MPI_Win_unlock(last, win);
            missed += old != (i > 1) || got[0] != i || got[1] != i;
        }
        EQ(missed, 0);
        long end = ROUNDS;
        MPI_Win_lock_all(0, win);
        MPI_Put(&end, 1, MPI_LONG, last, 7, 1, MPI_LONG, win);
        MPI_Win_unlock_all(win);
    }
    MPI_Barrier(w);
    MPI_Win_free(&win);
    if (kind) free(base);
}

/* Every rank adds to the counters of all. */
static void counters(void) {
    long *base, one = 1, old, sum = 0, all, k = 30;
    double *reals, half[100];
    MPI_Win win, other;
    MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, w, &base, &win);
    MPI_Win_allocate(100 * sizeof(double), sizeof(double), MPI_INFO_NULL, w, &reals, &other);
    base[0] = base[1] = 0;
    for (int i = 0; i < 100; i++) reals[i] = i, half[i] = 0.5;
    MPI_Barrier(w);
    MPI_Win_lock_all(0, win);
    MPI_Win_lock_all(0, other);
    for (int i = 0; i < k; i++)
        for (int r = 0; r < n; r++) {
            MPI_Fetch_and_op(&one, &old, MPI_LONG, r, 0, MPI_SUM, win);
            MPI_Accumulate(&one, 1, MPI_LONG, r, 1, 1, MPI_LONG, MPI_SUM, win);
            MPI_Accumulate(half, 100, MPI_DOUBLE, r, 0, 100, MPI_DOUBLE, MPI_SUM, other);
            MPI_Win_flush(r, win);
            sum += old;
        }
    MPI_Win_unlock_all(win);
    MPI_Win_unlock_all(other);
    MPI_Barrier(w);
    MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, w);
    long total = n * k;
    EQ(base[0], total), EQ(base[1], total);
    EQ(all, n * (total * (total - 1) / 2)); /* each value once */
    for (int i = 0; i < 100; i++) OK(reals[i] == i + 0.5 * total);
    MPI_Win_free(&win), MPI_Win_free(&other);
}

/* A lock of compare and swap, and MPI's own: what they guard is read and written back. */
static void exclusion(void) {
    long *base, one = 1, zero = 0, old, value, k = 10;
    MPI_Win win;
    MPI_Win_allocate(3 * sizeof(long), sizeof(long), MPI_INFO_NULL, w, &base, &win);
    base[0] = base[1] = base[2] = 0;
    MPI_Barrier(w);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < k; i++) {
        do MPI_Compare_and_swap(&one, &zero, &old, MPI_LONG, last, 0, win), MPI_Win_flush(last, win);
        while (old);
        MPI_Get(&value, 1, MPI_LONG, last, 1, 1, MPI_LONG, win);
        MPI_Win_flush(last, win);
        value++;
        MPI_Put(&value, 1, MPI_LONG, last, 1, 1, MPI_LONG, win);
        MPI_Win_flush(last, win);
        MPI_Fetch_and_op(&zero, &old, MPI_LONG, last, 0, MPI_REPLACE, win);
        MPI_Win_flush(last, win);
        OK(old == 1);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(w);
    if (me == last) EQ(base[1], n * k);
    for (int i = 0; i < k; i++)
        for (int r = 0; r < n; r++) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, win);
            MPI_Get(&value, 1, MPI_LONG, r, 2, 1, MPI_LONG, win);
            MPI_Win_flush(r, win);
            value++;
            MPI_Put(&value, 1, MPI_LONG, r, 2, 1, MPI_LONG, win);
            MPI_Win_unlock(r, win);
        }
    MPI_Barrier(w);
    EQ(base[2], n * k);
    MPI_Win_free(&win);
}

static unsigned char pattern(int of, long at) { return (unsigned char)(of * 31 + at * 7 + (at >> 9)); }

/* 24 MiB in one piece, and in many. */
static void large(int kind) {
    unsigned char *base, *buf = malloc(BIG);
    MPI_Win win;
    int right = (me + n / 2) % n, left = (me + n - n / 2) % n, wrong = 0;
    if (kind == 0) MPI_Win_allocate(BIG, 1, MPI_INFO_NULL, w, &base, &win);
    else base = malloc(BIG), MPI_Win_create(base, BIG, 1, MPI_INFO_NULL, w, &win);
    memset(base, 0, BIG);
    for (long i = 0; i < BIG; i++) buf[i] = pattern(me, i);
    MPI_Win_fence(0, win);
    MPI_Put(buf, BIG, MPI_BYTE, right, 0, BIG, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    for (long i = 0; i < BIG; i++) wrong += base[i] != pattern(left, i);
    EQ(wrong, 0);
    MPI_Win_fence(0, win);
    memset(buf, 0, BIG);
    MPI_Get(buf, BIG, MPI_BYTE, right, 0, BIG, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    for (long i = 0; i < BIG; i++) wrong += buf[i] != pattern(me, i);
    EQ(wrong, 0);
    /* Every other 100 bytes there, from every third of 100 here; and back by requests. */
    enum { BLOCKS = 40000 };
    MPI_Datatype there, here;
    MPI_Request q[2];
    MPI_Type_vector(BLOCKS, 100, 200, MPI_BYTE, &there), MPI_Type_commit(&there);
    MPI_Type_vector(BLOCKS, 100, 300, MPI_BYTE, &here), MPI_Type_commit(&here);
    memset(base, 0, BIG);
    MPI_Barrier(w);
    MPI_Win_lock_all(0, win);
    MPI_Rput(buf, 1, here, right, 50, 1, there, win, &q[0]);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    MPI_Win_flush_all(win);
    unsigned char *back = calloc(BIG, 1);
    MPI_Rget(back, 1, here, right, 50, 1, there, win, &q[0]);
    MPI_Rget(back + 100, 100, MPI_BYTE, right, 50, 100, MPI_BYTE, win, &q[1]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    for (long i = 0; i < BIG; i++) {
        long block = i / 300, at = i % 300;
        int want = block < BLOCKS && at < 100 ? pattern(me, i) : i >= 100 && i < 200 ? pattern(me, i - 100) : 0;
        wrong += back[i] != want;
    }
    EQ(wrong, 0);
    MPI_Win_unlock_all(win);
    MPI_Barrier(w);
    for (long i = 0; i < BIG; i++) {
        long block = (i - 50) / 200, at = (i - 50) % 200;
        int want = i >= 50 && block < BLOCKS && at < 100 ? pattern(left, block * 300 + at) : 0;
        wrong += base[i] != want;
    }
    EQ(wrong, 0);
    MPI_Type_free(&there), MPI_Type_free(&here);
    MPI_Barrier(w);
    /* A megabyte of numbers fetched and added to by all. */
    enum { NUMBERS = 131072 };
    double *numbers = (double *)base, *mine = (double *)buf, *old = (double *)back;
    for (int i = 0; i < NUMBERS; i++) numbers[i] = i, mine[i] = me + 1;
    MPI_Win_fence(0, win);
    MPI_Get_accumulate(mine, NUMBERS, MPI_DOUBLE, old, NUMBERS, MPI_DOUBLE, last, 0, NUMBERS, MPI_DOUBLE, MPI_SUM, win);
    MPI_Accumulate(mine, NUMBERS, MPI_DOUBLE, 0, 0, NUMBERS, MPI_DOUBLE, MPI_MAX, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < NUMBERS; i++) {
        double more = old[i] - i, want = me == last ? i + n * (n + 1) / 2 : me == 0 ? (i > n ? i : n) : i;
        wrong += numbers[i] != want || more < 0 || more > n * (n + 1) / 2 - me - 1;
    }
    EQ(wrong, 0);
    MPI_Win_free(&win);
    if (kind) free(base);
    free(buf), free(back);
}

/* Elements with padding between value and place. */
static void pairs(void) {
    struct { double value; int place; } *base, mine = {me * 1.5, me}, got;
    struct { long value; int place; } *whole, least = {-me, me};
    MPI_Win win, other;
    MPI_Win_allocate(sizeof *base, 1, MPI_INFO_NULL, w, &base, &win);
    MPI_Win_allocate(sizeof *whole, 1, MPI_INFO_NULL, w, &whole, &other);
    base->value = -1, base->place = -1, whole->value = 1, whole->place = -1;
    MPI_Barrier(w);
    MPI_Win_lock_all(0, win), MPI_Win_lock_all(0, other);
    for (int i = 0; i < 5; i++)
        for (int r = 0; r < n; r++) {
            MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, r, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
            MPI_Accumulate(&least, 1, MPI_LONG_INT, r, 0, 1, MPI_LONG_INT, MPI_MINLOC, other);
        }
    MPI_Win_unlock_all(win), MPI_Win_unlock_all(other);
    MPI_Barrier(w);
    OK(base->value == last * 1.5 && base->place == last && whole->value == -last && whole->place == last);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&got, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, win);
    MPI_Win_unlock(0, win);
    OK(got.value == last * 1.5 && got.place == last);
    MPI_Win_free(&win), MPI_Win_free(&other);
}

/* Every rank opens its memory to all others, round after round. */
static void posts(void) {
    int *base, wrong = 0;
    MPI_Win win;
    MPI_Group all, others;
    MPI_Comm_group(w, &all);
    MPI_Group_excl(all, 1, &me, &others);
    MPI_Win_allocate(n * sizeof(int), sizeof(int), MPI_INFO_NULL, w, &base, &win);
    for (int i = 0; i < ROUNDS; i++) {
        base[me] = me * 1000 + i;
        MPI_Win_post(others, 0, win);
        MPI_Win_start(others, 0, win);
        int value = me * 1000 + i;
        for (int r = 0; r < n; r++)
            if (r != me) MPI_Put(&value, 1, MPI_INT, r, me, 1, MPI_INT, win);
        MPI_Win_complete(win);
        if (i % 2) MPI_Win_wait(win);
        else for (int over = 0; !over;) MPI_Win_test(win, &over);
        for (int r = 0; r < n; r++) wrong += base[r] != r * 1000 + i;
    }
    EQ(wrong, 0);
    MPI_Group_free(&all), MPI_Group_free(&others);
    MPI_Win_free(&win);
}

/* Memory that is not attached is found out where it is, and told at the next synchronisation. The peers crash. */
static void not_attached(void) {
    long piece[4] = {0}, value = 5;
    MPI_Win win;
    MPI_Aint mine, theirs;
    MPI_Win_create_dynamic(MPI_INFO_NULL, w, &win);
    MPI_Win_attach(win, piece, 2 * sizeof(long));
    MPI_Get_address(piece, &mine);
    MPI_Sendrecv(&mine, 1, MPI_AINT, (me + n - n / 2) % n, 0, &theirs, 1, MPI_AINT, (me + n / 2) % n, 0, w, MPI_STATUS_IGNORE);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    int right = (me + n / 2) % n, class;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
    int put = MPI_Put(&value, 1, MPI_LONG, right, MPI_Aint_add(theirs, 2 * sizeof(long)), 1, MPI_LONG, win);
    int flush = MPI_Win_flush(right, win);
    MPI_Error_class(put ? put : flush, &class);
    EQ(class, MPI_ERR_RMA_RANGE);
    EQ(MPI_Put(&value, 1, MPI_LONG, right, MPI_Aint_add(theirs, sizeof(long)), 1, MPI_LONG, win), MPI_SUCCESS);
    EQ(MPI_Win_unlock(right, win), MPI_SUCCESS);
    MPI_Barrier(w);
    OK(piece[1] == 5 && piece[2] == 0);
    MPI_Win_detach(win, piece);
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &w);
    me = t_rank, n = t_size, last = n - 1;
    PART("a target that computes");
    a_target_that_computes(0), a_target_that_computes(1);
    PART("counters");
    counters();
    PART("exclusion");
    exclusion();
    PART("large");
    large(0), large(1);
    PART("pairs");
    pairs();
    PART("posts");
    posts();
    PART("not attached");
    if (getenv("VMPI_JOBID")) not_attached();
    say("far");
    MPI_Comm_free(&w);
    return t_end();
}
