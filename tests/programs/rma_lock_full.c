/* MPI_Win_lock_all when rank 0 has room for one request more: it may fail, but then nobody's memory stays locked. And locks are given back when there is
 * no room at all. Meant for ranks on several nodes, at least two of them on another one than rank 0. */
#include "t.h"
static MPI_Request *q;
static char *bytes;
/* Requests until there is no room for more; how many. */
static long fill(void) {
    long room = 1 << 16, used = 0;
    q = malloc(room * sizeof *q), bytes = malloc(1);
    while (MPI_Irecv(bytes, 0, MPI_CHAR, 0, used % 30000, MPI_COMM_SELF, &q[used]) == MPI_SUCCESS)
        if (++used == room) q = realloc(q, (room *= 2) * sizeof *q);
    return used;
}
static void drop(MPI_Request *request) { MPI_Cancel(request), MPI_Wait(request, MPI_STATUS_IGNORE); }
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Win win;
    long *base, one = 1;
    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    *base = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (t_rank == 0) {
        int class = -1;
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        long used = fill();
        OK(used > 1000);
        drop(&q[--used]);
        int code = MPI_Win_lock_all(0, win);
        MPI_Error_class(code, &class);
        EQ(class, MPI_ERR_NO_MEM);
        while (used) drop(&q[--used]);
        free(q);
        long two = 2;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_size - 1, 0, win);
        MPI_Put(&two, 1, MPI_LONG, t_size - 1, 0, 1, MPI_LONG, win);
        used = fill();
        EQ(MPI_Win_unlock(t_size - 1, win), MPI_SUCCESS);
        while (used) drop(&q[--used]);
        free(q);
        MPI_Win_lock_all(0, win);
        used = fill();
        EQ(MPI_Win_unlock_all(win), MPI_SUCCESS);
        while (used) drop(&q[--used]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int r = 0; r < t_size; r++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, win);
        MPI_Accumulate(&one, 1, MPI_LONG, r, 0, 1, MPI_LONG, MPI_SUM, win);
        MPI_Win_unlock(r, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win);
    EQ(*base, t_size + (t_rank ? 0 : t_size) + (t_rank == t_size - 1 ? 2 : 0));
    MPI_Win_unlock(t_rank, win);
    MPI_Win_free(&win);
    return t_end();
}
