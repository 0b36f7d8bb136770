/* One-sided communication in virtual time. Each line begins with its rank; all times are in picoseconds of virtual time.
 *
 *   times PEER    what operations between rank 0 and PEER take, flushed one by one
 *   order         who changes a number first, by MPI_Fetch_and_op, MPI_Compare_and_swap and locks, of ranks that come at different times
 *   stuck         each has locked its own memory alone, and asks for the next one's
 *   left          rank 0 gives the lock on rank 1's memory back, and calls MPI_Finalize at once
 *   flags N       a turn passed between ranks 0 and 1 by flags in their windows, which they poll
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, size;

static long long now(void) {
    return (long long)(MPI_Wtime() * 1e12 + 0.5);
}

static void work(double microseconds) {
    double end = MPI_Wtime() + microseconds * 1e-6;
    while (MPI_Wtime() < end) {
    }
}

static void fail(const char *what) {
    printf("%d] wrong: %s\n", me, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void times(int peer) {
    static char data[1 << 20], back[1 << 20];
    char *memory;
    MPI_Win win;
    MPI_Win_allocate(sizeof data, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, me + 1, sizeof data);
    memset(data, 77, sizeof data);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
        int sizes[] = {0, 8, 4096, 100000, 1 << 20}, i;
        long long begin, one = 1, old, new = 5, compare;
        begin = now();
        MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win);
        printf("%d] lock %lld\n", me, now() - begin);
        for (i = 0; i < 5; i++) {
            int bytes = sizes[i];
            begin = now();
            MPI_Put(data, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, win);
            MPI_Win_flush(peer, win);
            printf("%d] put %d %lld\n", me, bytes, now() - begin);
            begin = now();
            MPI_Get(back, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, win);
            MPI_Win_flush(peer, win);
            printf("%d] get %d %lld\n", me, bytes, now() - begin);
            if (bytes > 0 && (back[0] != 77 || back[bytes - 1] != 77)) fail("what was put is got");
        }
        old = 0;
        MPI_Put(&old, 8, MPI_BYTE, peer, 0, 8, MPI_BYTE, win);
        MPI_Win_flush(peer, win);
        begin = now();
        MPI_Fetch_and_op(&one, &old, MPI_LONG_LONG, peer, 0, MPI_SUM, win);
        MPI_Win_flush(peer, win);
        printf("%d] fetch %lld\n", me, now() - begin);
        compare = 1;
        begin = now();
        MPI_Compare_and_swap(&new, &compare, &old, MPI_LONG_LONG, peer, 0, win);
        MPI_Win_flush(peer, win);
        printf("%d] swap %lld\n", me, now() - begin);
        if (old != 1) fail("the number is 1 before it is swapped");
        begin = now();
        MPI_Win_unlock(peer, win);
        printf("%d] unlock %lld\n", me, now() - begin);
        /* Where nobody else can meet it: the same times. */
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, win);
        begin = now();
        MPI_Put(data, 4096, MPI_BYTE, peer, 0, 4096, MPI_BYTE, win);
        MPI_Win_flush(peer, win);
        printf("%d] alone put 4096 %lld\n", me, now() - begin);
        begin = now();
        MPI_Get(back, 4096, MPI_BYTE, peer, 0, 4096, MPI_BYTE, win);
        MPI_Win_flush(peer, win);
        printf("%d] alone get 4096 %lld\n", me, now() - begin);
        MPI_Win_unlock(peer, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == peer && (memory[0] != 77 || memory[4095] != 77)) fail("what was put is there");
    MPI_Win_free(&win);
}

static void order(void) {
    long long *memory, old, one = 1, sum = 0;
    MPI_Win win;
    int round;
    MPI_Win_allocate(4 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, 4 * sizeof *memory);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (round = 0; round < 20; round++) {
        int target = (me + round) % 3 % size;
        work((me * 7 + round * 3) % 5);
        MPI_Fetch_and_op(&one, &old, MPI_LONG_LONG, target, 0, MPI_SUM, win);
        MPI_Win_flush(target, win);
        printf("%d] %d: number %lld of %d by %lld\n", me, round, old, target, now());
        sum += old;
        if (round % 4 == 0) {
            long long mine = me + 1, was = old;
            MPI_Compare_and_swap(&mine, &was, &old, MPI_LONG_LONG, 0, 1, win);
            MPI_Accumulate(&mine, 1, MPI_LONG_LONG, 1 % size, 2, 1, MPI_LONG_LONG, MPI_SUM, win);
            MPI_Win_flush_all(win);
            printf("%d] %d: swapped %lld by %lld\n", me, round, old, now());
        }
    }
    MPI_Win_unlock_all(win);
    for (round = 0; round < 8; round++) {
        MPI_Win_lock(round % 3 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win);
        MPI_Get(&old, 1, MPI_LONG_LONG, 0, 3, 1, MPI_LONG_LONG, win);
        MPI_Win_flush(0, win);
        if (round % 3) {
            old++;
            MPI_Put(&old, 1, MPI_LONG_LONG, 0, 3, 1, MPI_LONG_LONG, win);
        }
        MPI_Win_unlock(0, win);
        printf("%d] lock %d: %lld by %lld\n", me, round, old, now());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0 && memory[3] != 5LL * size) fail("each exclusive lock has added one");
    if (me == 1 % size && memory[2] != 5LL * size * (size + 1) / 2) fail("all accumulations are there");
    MPI_Win_free(&win);
}

static void flags(int rounds) {
    volatile long long *memory;
    long long i;
    MPI_Win win;
    MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&memory, &win);
    *memory = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (me < 2) {
        long long begin = now();
        MPI_Win_lock_all(0, win);
        for (i = 1; i <= rounds; i++) {
            if (me == 0) {
                MPI_Put(&i, 1, MPI_LONG_LONG, 1, 0, 1, MPI_LONG_LONG, win);
                MPI_Win_flush(1, win);
            }
            while (*memory < i) MPI_Win_sync(win);
            if (me == 1) {
                MPI_Put(&i, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, win);
                MPI_Win_flush(0, win);
            }
        }
        MPI_Win_unlock_all(win);
        printf("%d] flags %lld\n", me, (now() - begin) / rounds);
    } else {
        MPI_Win_lock_all(0, win);
        MPI_Win_unlock_all(win);
    }
    MPI_Win_free(&win);
}

static void stuck(void) {
    int *memory;
    MPI_Win win;
    MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (me + 1) % size, 0, win);
}

static void left(void) {
    static int memory[2];
    int one = 1;
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 1) work(20);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    if (me == 0) MPI_Put(&one, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    MPI_Win_unlock(1, win);
    if (me == 1) printf("%d] left %d\n", me, memory[0]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && !strcmp(argv[1], "times")) times(atoi(argv[2]));
    else if (argc > 1 && !strcmp(argv[1], "order")) order();
    else if (argc > 1 && !strcmp(argv[1], "stuck")) stuck();
    else if (argc > 1 && !strcmp(argv[1], "left")) left();
    else if (argc > 2 && !strcmp(argv[1], "flags")) flags(atoi(argv[2]));
    else fail("no such mode");
    MPI_Finalize();
    return 0;
}
