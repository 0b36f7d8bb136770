/* Microseconds per operation of rank 0 on rank 1 (with "all": of every rank on its right neighbour, at once):
 * put and get with flush, fetch_and_op, compare_and_swap, accumulate, lock and unlock, fence. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int me, n, all;
static MPI_Win win;
static double begin(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}
static void done(const char *what, long bytes, double since, int rounds) {
    double us = (MPI_Wtime() - since) * 1e6 / rounds, worst;
    MPI_Reduce(&us, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (me == 0) printf("%-16s %8ld  %10.3f\n", what, bytes, all ? worst : us);
    MPI_Barrier(MPI_COMM_WORLD);
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me), MPI_Comm_size(MPI_COMM_WORLD, &n);
    int own = argc > 1 && strstr(argv[1], "create"), rounds = argc > 2 ? atoi(argv[2]) : 2000;
    all = argc > 1 && strstr(argv[1], "all");
    long size = 1 << 20, one = 1, old, value = 5;
    char *base, *buf = malloc(size);
    memset(buf, 1, size);
    if (own) base = malloc(size), MPI_Win_create(base, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    else MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    memset(base, 0, size);
    int target = (me + 1) % n, active = all || me == 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    long sizes[] = {8, 1024, 65536, 1048576};
    for (int s = 0; s < 4; s++) {
        int k = sizes[s] > 100000 ? rounds / 10 : rounds;
        double t = begin();
        if (active) for (int i = 0; i < k; i++) MPI_Put(buf, sizes[s], MPI_BYTE, target, 0, sizes[s], MPI_BYTE, win), MPI_Win_flush(target, win);
        done("put+flush", sizes[s], t, k);
        t = begin();
        if (active) for (int i = 0; i < k; i++) MPI_Get(buf, sizes[s], MPI_BYTE, target, 0, sizes[s], MPI_BYTE, win), MPI_Win_flush(target, win);
        done("get+flush", sizes[s], t, k);
    }
    memset(base, 0, 64);
    double t = begin();
    if (active) for (int i = 0; i < rounds; i++) MPI_Fetch_and_op(&one, &old, MPI_LONG, target, 0, MPI_SUM, win), MPI_Win_flush(target, win);
    done("fetch_and_op", 8, t, rounds);
    t = begin();
    if (active) for (int i = 0; i < rounds; i++) MPI_Compare_and_swap(&one, &value, &old, MPI_LONG, target, 0, win), MPI_Win_flush(target, win);
    done("compare_and_swap", 8, t, rounds);
    t = begin();
    if (active) for (int i = 0; i < rounds; i++) MPI_Accumulate(buf, 128, MPI_DOUBLE, target, 0, 128, MPI_DOUBLE, MPI_SUM, win), MPI_Win_flush(target, win);
    done("accumulate", 1024, t, rounds);
    MPI_Win_unlock_all(win);
    t = begin();
    if (active) for (int i = 0; i < rounds; i++) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win), MPI_Win_unlock(target, win);
    done("lock+unlock", 0, t, rounds);
    t = begin();
    for (int i = 0; i < rounds; i++) MPI_Win_fence(0, win);
    done("fence", 0, t, rounds);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
