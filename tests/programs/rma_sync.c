/* Synchronisation of windows: fences with assertions, post-start-complete-wait between parts of the ranks, test, locks
 * that exclude and that are shared, lock_all, nested epochs of several windows. */
#include "t.h"
static MPI_Comm w;
static MPI_Win win;
static int *m;
static void make(int ints) {
    MPI_Win_allocate(65536, sizeof(int), MPI_INFO_NULL, w, &m, &win); /* MPICH 4.0 misplaces small ones */
    memset(m, 0, ints * sizeof(int));
    MPI_Barrier(w);
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &w);
    MPI_Group all, others, one;
    MPI_Comm_group(w, &all);
    int n = t_size, me = t_rank, flag, zero = 0, wrong = 0;

    PART("fences with assertions");
    make(n);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int round = 0; round < 50; round++) {
        int values[64];
        for (int r = 0; r < n; r++) values[r] = round * 100 + me, MPI_Put(&values[r], 1, MPI_INT, r, me, 1, MPI_INT, win);
        MPI_Win_fence(round % 2 ? 0 : MPI_MODE_NOSTORE | MPI_MODE_NOPUT, win);
        for (int r = 0; r < n; r++) wrong += m[r] != round * 100 + r;
        MPI_Win_fence(MPI_MODE_NOSTORE, win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    EQ(wrong, 0);
    MPI_Win_free(&win);

    PART("rank 0 serves all others; then all others serve rank 0");
    make(n + 1);
    MPI_Group_excl(all, 1, &zero, &others);
    MPI_Group_incl(all, 1, &zero, &one);
    for (int round = 1; round <= 20; round++) {
        int value = round * 10 + me;
        if (me == 0) {
            MPI_Win_post(others, 0, win);
            if (round % 2) MPI_Win_wait(win);
            else for (flag = 0; !flag;) MPI_Win_test(win, &flag);
            for (int r = 1; r < n; r++) wrong += m[r] != round * 10 + r;
        } else {
            MPI_Win_start(one, 0, win);
            MPI_Put(&value, 1, MPI_INT, 0, me, 1, MPI_INT, win);
            MPI_Win_complete(win);
        }
        if (me == 0) {
            MPI_Win_start(others, 0, win);
            for (int r = 1; r < n; r++) MPI_Put(&round, 1, MPI_INT, r, n, 1, MPI_INT, win);
            MPI_Win_complete(win);
        } else {
            MPI_Win_post(one, 0, win);
            MPI_Win_wait(win);
            wrong += m[n] != round;
        }
    }
    EQ(wrong, 0);
    MPI_Group_free(&others), MPI_Group_free(&one);

    PART("everybody posts and starts to everybody, and to nobody");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    for (int round = 0; round < 20; round++) {
        int values[64];
        MPI_Win_post(all, 0, win);
        MPI_Win_start(all, 0, win);
        for (int r = 0; r < n; r++) values[r] = 1000 + round + me, MPI_Put(&values[r], 1, MPI_INT, r, me, 1, MPI_INT, win);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        for (int r = 0; r < n; r++) wrong += m[r] != 1000 + round + r;
    }
    MPI_Win_post(MPI_GROUP_EMPTY, 0, win);
    MPI_Win_start(MPI_GROUP_EMPTY, 0, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    EQ(wrong, 0);
    MPI_Win_free(&win);

    PART("exclusive locks exclude: a counter is read, then written");
    make(2);
    for (int i = 0; i < 100; i++) {
        int value = -1, target = i % n;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        MPI_Get(&value, 1, MPI_INT, target, 0, 1, MPI_INT, win);
        MPI_Win_flush(target, win);
        value++;
        MPI_Put(&value, 1, MPI_INT, target, 0, 1, MPI_INT, win);
        MPI_Win_unlock(target, win);
    }
    MPI_Barrier(w);
    int sum = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
    MPI_Allreduce(&m[0], &sum, 1, MPI_INT, MPI_SUM, w);
    MPI_Win_unlock(me, win);
    EQ(sum, 100 * n);

    PART("readers and writers");
    for (int i = 0; i < 60; i++) {
        int pair[2];
        if ((i + me) % 3) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
            MPI_Get(pair, 2, MPI_INT, 0, 0, 2, MPI_INT, win);
            MPI_Win_unlock(0, win);
            wrong += i > 0 && pair[1] != 0 && pair[0] != pair[1];
        } else {
            pair[0] = pair[1] = i * 100 + me + 1;
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
            MPI_Put(&pair[0], 1, MPI_INT, 0, 0, 1, MPI_INT, win);
            MPI_Put(&pair[1], 1, MPI_INT, 0, 1, 1, MPI_INT, win);
            MPI_Win_unlock(0, win);
        }
    }
    EQ(wrong, 0);
    MPI_Barrier(w);

    PART("several targets locked at once, in order; all of them shared");
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win);
    m[0] = m[1] = 0;
    MPI_Win_unlock(me, win);
    MPI_Barrier(w);
#ifdef OPEN_MPI
    int rounds = 20;
#else
    int rounds = getenv("VMPI_JOBID") ? 20 : 0; /* MPICH 4.0 hangs in it */
#endif
    for (int i = 0; i < rounds; i++) {
        int ones = 1;
        MPI_Barrier(w);
        if (i % 2) {
            MPI_Win_lock_all(0, win);
            for (int r = 0; r < n; r++) MPI_Accumulate(&ones, 1, MPI_INT, r, 1, 1, MPI_INT, MPI_SUM, win);
            MPI_Win_unlock_all(win);
        } else {
            for (int r = 0; r < n; r++) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, win);
            for (int r = 0; r < n; r++) MPI_Accumulate(&ones, 1, MPI_INT, r, 1, 1, MPI_INT, MPI_SUM, win);
            for (int r = n - 1; r >= 0; r--) MPI_Win_unlock(r, win);
        }
    }
    MPI_Barrier(w);
    MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
    EQ(m[1], rounds * n);
    MPI_Win_unlock(me, win);

    PART("locks on MPI_PROC_NULL after a fence");
    MPI_Win_fence(0, win);
#ifdef OPEN_MPI
    int null_locks = getenv("VMPI_JOBID") ? 3 : 0; /* to Open MPI an invalid rank */
#else
    int null_locks = 3;
#endif
    for (int i = 0; i < null_locks; i++) {
        long nothing = 1, was = 2;
        MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, win);
        MPI_Put(&nothing, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win);
        MPI_Fetch_and_op(&nothing, &was, MPI_LONG, MPI_PROC_NULL, 0, MPI_SUM, win);
        MPI_Win_flush(MPI_PROC_NULL, win);
        if (i == 1) MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win);
        MPI_Win_unlock(MPI_PROC_NULL, win);
        if (i == 1) MPI_Win_unlock(t_rank, win);
    }
    MPI_Barrier(w);

    PART("no checks");
    MPI_Barrier(w);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Put(&me, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(w);
    MPI_Win_lock(MPI_LOCK_SHARED, me, MPI_MODE_NOCHECK, win);
    EQ(m[0], (me + n - 1) % n);
    MPI_Win_unlock(me, win);

    PART("fence and lock in turn; two windows with different epochs");
    MPI_Win second;
    int *m2;
    MPI_Win_allocate(65536, sizeof(int), MPI_INFO_NULL, w, &m2, &second);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_fence(0, second);
    for (int i = 0; i < 10; i++) {
        int a = i * 10 + me, b = -1;
        MPI_Put(&a, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, second);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win);
        m[0] = a;
        MPI_Win_unlock(me, win);
        MPI_Win_fence(0, second);
        wrong += *m2 != i * 10 + (me + n - 1) % n;
        MPI_Win_lock(MPI_LOCK_SHARED, (me + 1) % n, 0, win);
        MPI_Get(&b, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, win);
        MPI_Win_unlock((me + 1) % n, win);
        wrong += b != i * 10 + (me + 1) % n;
        MPI_Win_fence(0, second);
    }
    EQ(wrong, 0);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, second);
    MPI_Win_free(&second);
    MPI_Win_free(&win);

    PART("a passive target that waits for a message");
    make(1);
    MPI_Win_lock_all(0, win);
    if (me == 0) {
        for (int r = 1; r < n; r++) {
            int v = 4000 + r;
            MPI_Put(&v, 1, MPI_INT, r, 0, 1, MPI_INT, win);
            MPI_Win_flush(r, win);
            MPI_Send(&v, 1, MPI_INT, r, 5, w);
        }
    } else {
        int v = 0;
        MPI_Recv(&v, 1, MPI_INT, 0, 5, w, MPI_STATUS_IGNORE);
        MPI_Win_sync(win);
        OK(v == 4000 + me && m[0] == v);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Group_free(&all);
    MPI_Comm_free(&w);
    say("synchronised, %d wrong", wrong);
    return t_end();
}
