/* Ranks that wait for each other by looking at a window again and again must not hang, though they share cores: by
 * loads and stores alone ("load"), by MPI_Win_sync, by MPI_Get, by MPI_Fetch_and_op, by compare and swap. With a third
 * argument, and one of the last three, the ranks need not share memory. */
#include "t.h"
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const char *how = argc > 1 ? argv[1] : "sync";
    int rounds = argc > 2 ? atoi(argv[2]) : 20, n = t_size, me = t_rank;
    MPI_Win win;
    volatile int *turn;
    int *mine, du;
    MPI_Aint bytes;
    int apart = argc > 3;
    if (apart) MPI_Win_allocate(4096, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    else {
        MPI_Win_allocate_shared(me ? 0 : 4096, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
        MPI_Win_shared_query(win, 0, &bytes, &du, &mine);
    }
    turn = mine;
    if (me == 0 || apart) *turn = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < rounds * n; i++) {
        if (i % n != me) continue;
        int seen = -1, zero = 0, next = i + 1;
        while (seen != i) {
            if (!strcmp(how, "load")) seen = *turn;
            else if (!strcmp(how, "sync")) MPI_Win_sync(win), seen = *turn;
            else if (!strcmp(how, "get")) MPI_Get(&seen, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_Win_flush(0, win);
            else if (!strcmp(how, "fetch")) MPI_Fetch_and_op(&zero, &seen, MPI_INT, 0, 0, MPI_NO_OP, win), MPI_Win_flush(0, win);
            else MPI_Compare_and_swap(&next, &i, &seen, MPI_INT, 0, 0, win), MPI_Win_flush(0, win);
        }
        if (!strcmp(how, "swap")) continue;
        if (apart) MPI_Accumulate(&next, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, win), MPI_Win_flush(0, win);
        else {
            __sync_synchronize();
            *turn = next;
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0 || !apart) EQ(*turn, rounds * n);
    MPI_Win_free(&win);
    say("%s came round", how);
    return t_end();
}
