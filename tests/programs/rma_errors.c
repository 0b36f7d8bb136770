/* Wrong arguments and wrong epochs in one-sided calls give errors of the right class, and the window stays usable. */
#include "t.h"
static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}
#define EXPECT(class, call) t_equal(class_of(call), class, #class " from " #call, __FILE__, __LINE__)
/* What the standard says and not every peer finds. */
#define OURS(class, call) do { if (getenv("VMPI_JOBID")) EXPECT(class, call); } while (0)
static void user_op(void *in, void *inout, int *n, MPI_Datatype *t) { (void)in, (void)inout, (void)n, (void)t; }
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm w = MPI_COMM_WORLD, self = MPI_COMM_SELF;
    MPI_Comm_set_errhandler(w, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    static int memory[1024];
    int v[4] = {1, 2, 3, 4}, r[4], flag, n = t_size, me = t_rank, *base;
    MPI_Win win, other;
    MPI_Datatype uncommitted, mixed;
    MPI_Op mine;
    MPI_Request q;
    MPI_Group all, none = MPI_GROUP_NULL;
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &mixed);
    MPI_Type_commit(&mixed);
    MPI_Op_create(user_op, 1, &mine);
    MPI_Comm_group(w, &all);

    PART("making windows");
    EXPECT(MPI_ERR_COMM, MPI_Win_create(memory, 4096, 4, MPI_INFO_NULL, MPI_COMM_NULL, &other));
    EXPECT(MPI_ERR_SIZE, MPI_Win_create(memory, -1, 4, MPI_INFO_NULL, w, &other));
    OURS(MPI_ERR_DISP, MPI_Win_create(memory, 4096, 0, MPI_INFO_NULL, w, &other));
    OURS(MPI_ERR_DISP, MPI_Win_create(memory, 4096, -4, MPI_INFO_NULL, w, &other));
    EXPECT(MPI_ERR_COMM, MPI_Win_allocate(4096, 4, MPI_INFO_NULL, MPI_COMM_NULL, &base, &other));
    EXPECT(MPI_ERR_SIZE, MPI_Win_allocate(-5, 4, MPI_INFO_NULL, w, &base, &other));
    EXPECT(MPI_ERR_SIZE, MPI_Win_allocate_shared(-5, 4, MPI_INFO_NULL, w, &base, &other));
    EXPECT(MPI_ERR_COMM, MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &other));
    OURS(MPI_ERR_NO_MEM, MPI_Win_allocate((MPI_Aint)1 << 60, 1, MPI_INFO_NULL, w, &base, &other));

    PART("no window");
    MPI_Win null = MPI_WIN_NULL;
    EXPECT(MPI_ERR_WIN, MPI_Put(v, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL));
    EXPECT(MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
    EXPECT(MPI_ERR_WIN, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, MPI_WIN_NULL));
    EXPECT(MPI_ERR_WIN, MPI_Win_free(&null));
    EXPECT(MPI_ERR_WIN, MPI_Win_get_group(MPI_WIN_NULL, &none));

    MPI_Win_allocate(65536, sizeof(int), MPI_INFO_NULL, w, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    memset(base, 0, 65536);
    MPI_Barrier(w);

    PART("no epoch");
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Put(v, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Get(v, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Accumulate(v, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Fetch_and_op(v, r, MPI_INT, 0, 0, MPI_SUM, win));
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Compare_and_swap(v, v, r, MPI_INT, 0, 0, win));
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_test(win, &flag));
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, win));
    EXPECT(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_flush_local(0, win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_flush_local_all(win));

    PART("wrong arguments");
    MPI_Barrier(w);
    MPI_Win_lock_all(0, win);
    EXPECT(MPI_ERR_COUNT, MPI_Put(v, -1, MPI_INT, 0, 0, 1, MPI_INT, win));
    EXPECT(MPI_ERR_COUNT, MPI_Get(v, -1, MPI_INT, 0, 0, 1, MPI_INT, win));
    EXPECT(MPI_ERR_COUNT, MPI_Put(v, 1, MPI_INT, 0, 0, -1, MPI_INT, win));
    EXPECT(MPI_ERR_TYPE, MPI_Put(v, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win));
    EXPECT(MPI_ERR_TYPE, MPI_Put(v, 1, MPI_INT, 0, 0, 1, MPI_DATATYPE_NULL, win));
    EXPECT(MPI_ERR_TYPE, MPI_Put(v, 1, uncommitted, 0, 0, 2, MPI_INT, win));
    EXPECT(MPI_ERR_RANK, MPI_Put(v, 1, MPI_INT, n, 0, 1, MPI_INT, win));
    EXPECT(MPI_ERR_RANK, MPI_Get(v, 1, MPI_INT, -77, 0, 1, MPI_INT, win));
    OURS(MPI_ERR_RANK, MPI_Win_flush(n + 2, win));
    EXPECT(MPI_ERR_DISP, MPI_Put(v, 1, MPI_INT, 0, -1, 1, MPI_INT, win));
    EXPECT(MPI_ERR_OP, MPI_Accumulate(v, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win));
    EXPECT(MPI_ERR_OP, MPI_Accumulate(v, 1, MPI_INT, 0, 0, 1, MPI_INT, mine, win));
    OURS(MPI_ERR_OP, MPI_Accumulate(v, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win));
    OURS(MPI_ERR_OP, MPI_Accumulate(v, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_BAND, win));
    OURS(MPI_ERR_TYPE, MPI_Accumulate(v, 1, MPI_INT, 0, 0, 1, MPI_FLOAT, MPI_SUM, win));
    OURS(MPI_ERR_TYPE, MPI_Accumulate(v, 1, mixed, 0, 0, 1, mixed, MPI_SUM, win));
    OURS(MPI_ERR_TYPE, MPI_Compare_and_swap(v, v, r, MPI_FLOAT, 0, 0, win));
    OURS(MPI_ERR_TYPE, MPI_Fetch_and_op(v, r, mixed, 0, 0, MPI_SUM, win));
    OURS(MPI_ERR_RMA_RANGE, MPI_Put(v, 1, MPI_INT, 0, 16384, 1, MPI_INT, win));
    OURS(MPI_ERR_RMA_RANGE, MPI_Get(v, 2, MPI_INT, 0, 16383, 2, MPI_INT, win));
    OURS(MPI_ERR_RMA_RANGE, MPI_Accumulate(v, 1, MPI_INT, 0, (MPI_Aint)1 << 61, 1, MPI_INT, MPI_SUM, win));
    OURS(MPI_SUCCESS, MPI_Get(r, 1, MPI_INT, 0, 16383, 1, MPI_INT, win));
    OURS(MPI_ERR_TRUNCATE, MPI_Put(v, 2, MPI_INT, 0, 0, 1, MPI_INT, win));
    OURS(MPI_ERR_TRUNCATE, MPI_Get(v, 1, MPI_INT, 0, 0, 2, MPI_INT, win));
    EXPECT(MPI_ERR_RANK, MPI_Rput(v, 1, MPI_INT, n, 0, 1, MPI_INT, win, &q));
    EXPECT(MPI_SUCCESS, MPI_Put(v, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));

    PART("epochs inside others");
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_start(all, 0, win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    EXPECT(MPI_SUCCESS, MPI_Win_unlock_all(win));
    MPI_Barrier(w);
    EXPECT(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, n, 0, win));
    OURS(MPI_ERR_LOCKTYPE, MPI_Win_lock(4711, 0, 0, win));
    EXPECT(MPI_SUCCESS, MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
    if (n > 1) OURS(MPI_ERR_RMA_SYNC, MPI_Put(v, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
    EXPECT(MPI_SUCCESS, MPI_Win_unlock(me, win));
    OURS(MPI_ERR_GROUP, MPI_Win_post(MPI_GROUP_NULL, 0, win));
    OURS(MPI_ERR_GROUP, MPI_Win_start(MPI_GROUP_NULL, 0, win));
    MPI_Barrier(w);
    MPI_Win_post(all, 0, win);
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_post(all, 0, win));
    MPI_Win_start(all, 0, win);
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_start(all, 0, win));
    OURS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
    EXPECT(MPI_SUCCESS, MPI_Put(v, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, win));
    EXPECT(MPI_SUCCESS, MPI_Win_complete(win));
    EXPECT(MPI_SUCCESS, MPI_Win_wait(win));
    EQ(base[0], 1);
    OURS(MPI_ERR_ASSERT, MPI_Win_fence(0x7f00000, win));
    EXPECT(MPI_SUCCESS, MPI_Win_fence(0, win));
    EXPECT(MPI_SUCCESS, MPI_Win_fence(MPI_MODE_NOSUCCEED, win));

    PART("flavors");
    MPI_Aint bytes;
    int du;
    OURS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, memory, 64));
    OURS(MPI_ERR_RMA_FLAVOR, MPI_Win_detach(win, memory));
    MPI_Win_free(&win);
    MPI_Win_create_dynamic(MPI_INFO_NULL, w, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    OURS(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(win, 0, &bytes, &du, &base));
    OURS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(win, memory));
    OURS(MPI_ERR_SIZE, MPI_Win_attach(win, memory, -4));
    MPI_Win_fence(0, win);
    MPI_Aint at;
    MPI_Get_address(memory, &at);
    OURS(MPI_ERR_RMA_RANGE, MPI_Put(v, 1, MPI_INT, me, at, 1, MPI_INT, win));
    MPI_Win_attach(win, memory, sizeof memory);
    EXPECT(MPI_SUCCESS, MPI_Put(v, 1, MPI_INT, me, at, 1, MPI_INT, win));
    OURS(MPI_ERR_RMA_RANGE, MPI_Put(v, 1, MPI_INT, me, MPI_Aint_add(at, sizeof memory - 2), 1, MPI_INT, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    EQ(memory[0], 1);
    MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
    MPI_Op_free(&mine);
    MPI_Type_free(&uncommitted), MPI_Type_free(&mixed);
    MPI_Group_free(&all);
    say("errors");
    return t_end();
}
