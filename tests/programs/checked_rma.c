/* Faults in one-sided communication that vmpirun --check is to find, and their correct twins: checked_rma good|bad CASE... for three ranks. A line that ends in a
   case's name is where that fault is to be found. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int rank, size, bad;
static MPI_Comm world;
static int *memory;

#define N 64
#define HERE MPI_STATUS_IGNORE

/* What MPI itself says of a fault, and the program goes on. */
static MPI_Errhandler handler;
static void complain(MPI_Win *win, int *code, ...) {
    char text[MPI_MAX_ERROR_STRING];
    int length, class;
    (void)win;
    MPI_Error_class(*code, &class);
    MPI_Error_string(class, text, &length);
    if (rank == 1)
        fprintf(stderr, "returned: %s\n", text);
}

static MPI_Win window(void) {
    MPI_Win win;
    MPI_Win_allocate(N * sizeof(int), sizeof(int), MPI_INFO_NULL, world, &memory, &win);
    memset(memory, 0, N * sizeof(int));
    MPI_Win_set_errhandler(win, handler);
    MPI_Barrier(world);
    return win;
}

/* Between fences. */

static void put_put(void) {
    int a[4] = {1, 2, 3, 4};
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank < 2)
        MPI_Put(a, 4, MPI_INT, 2, bad ? 3 * rank : 4 * rank, 4, MPI_INT, win); /* put_put */
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void put_get(void) {
    int a[4] = {0};
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(a, 4, MPI_INT, 2, 0, 4, MPI_INT, win); /* put_get */
    if (!bad)
        MPI_Win_fence(0, win);
    if (rank == 1)
        MPI_Get(a, 4, MPI_INT, 2, 0, 4, MPI_INT, win); /* put_get */
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void put_twice(void) {
    int a = 1, b = 2;
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 1) {
        MPI_Put(&a, 1, MPI_INT, 0, 5, 1, MPI_INT, win); /* put_twice */
        MPI_Put(&b, 1, MPI_INT, 0, bad ? 5 : 6, 1, MPI_INT, win); /* put_twice */
    }
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void put_accumulate(void) {
    int a = 1;
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 0 && bad)
        MPI_Put(&a, 1, MPI_INT, 2, 7, 1, MPI_INT, win); /* put_accumulate */
    else
        MPI_Accumulate(&a, 1, MPI_INT, 2, 7, 1, MPI_INT, MPI_SUM, win); /* put_accumulate */
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void two_operations(void) {
    int a = 1;
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Accumulate(&a, 1, MPI_INT, 0, 0, 1, MPI_INT, bad && rank == 1 ? MPI_PROD : MPI_SUM, win); /* two_operations */
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void two_types(void) {
    double a[2] = {0};
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 1 && bad)
        MPI_Accumulate(a, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_SUM, win); /* two_types */
    else
        MPI_Accumulate(a, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win); /* two_types */
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void columns(void) {
    /* Columns of a matrix of eight by eight: their spans overlap, their bytes do not. */
    int a[8] = {rank};
    MPI_Datatype column;
    MPI_Type_vector(8, 1, 8, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank < 2)
        MPI_Put(a, 8, MPI_INT, 2, bad ? 0 : rank, 1, column, win); /* columns */
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_Type_free(&column);
}

static void fence_between(void) {
    /* The same bytes in two epochs: right. The bad one has forgotten the fence between. */
    int a = rank;
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    for (int turn = 0; turn < 3; turn++) {
        if (rank == turn)
            MPI_Put(&a, 1, MPI_INT, 0, 9, 1, MPI_INT, win); /* fence_between */
        if (!bad)
            MPI_Win_fence(0, win);
    }
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void local_store(void) {
    int a[2] = {11, 12};
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(a, 2, MPI_INT, 1, 2, 2, MPI_INT, win); /* local_store */
    MPI_Barrier(world);
    if (rank == 1)
        memory[bad ? 3 : 4] = 7;
    MPI_Win_fence(0, win);
    if (rank == 1)
        memory[3] = 8;
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void origin_changed(void) {
    int a[4] = {0};
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Put(a, 4, MPI_INT, (rank + 1) % size, 0, 4, MPI_INT, win); /* origin_changed */
    if (bad)
        a[2] = 1;
    MPI_Win_fence(0, win);
    a[2] = 2;
    MPI_Win_free(&win);
}

static void noprecede(void) {
    int a = 0;
    MPI_Win win = window();
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Put(&a, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(bad ? MPI_MODE_NOPRECEDE : MPI_MODE_NOSUCCEED, win); /* noprecede */
    if (bad)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
}

/* Start and complete. */

static void started_put(void) {
    int a[2] = {0};
    const int origins[2] = {0, 1}, target = 2;
    MPI_Group all, group;
    MPI_Comm_group(world, &all);
    MPI_Win win = window();
    if (rank < 2) {
        MPI_Group_incl(all, 1, &target, &group);
        MPI_Win_start(group, 0, win);
        MPI_Put(a, 2, MPI_INT, 2, bad ? rank : 2 * rank, 2, MPI_INT, win); /* started_put */
        /* Both have put before one completes. */
        MPI_Sendrecv_replace(a, 1, MPI_INT, 1 - rank, 0, 1 - rank, 0, world, HERE);
        MPI_Win_complete(win);
    } else {
        MPI_Group_incl(all, 2, origins, &group);
        MPI_Win_post(group, 0, win);
        MPI_Win_wait(win);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    MPI_Win_free(&win);
}

/* Locks. */

static void shared_locks(void) {
    int a = rank;
    MPI_Win win = window();
    MPI_Win_lock(bad ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(&a, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* shared_locks */
    if (bad)
        MPI_Barrier(world);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
}

static void put_then_get(void) {
    int a = 1, b = 0;
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % size, 0, win);
    MPI_Put(&a, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win); /* put_then_get */
    if (!bad)
        MPI_Win_flush((rank + 1) % size, win);
    MPI_Get(&b, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win); /* put_then_get */
    MPI_Win_unlock((rank + 1) % size, win);
    MPI_Win_free(&win);
}

static void flush_forgotten(void) {
    int a = 1, b = 0;
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(&a, 1, MPI_INT, 2, 0, 1, MPI_INT, win); /* flush_forgotten */
        if (bad)
            MPI_Win_flush_local(2, win);
        else
            MPI_Win_flush(2, win);
    }
    MPI_Barrier(world);
    if (rank == 1)
        MPI_Get(&b, 1, MPI_INT, 2, 0, 1, MPI_INT, win); /* flush_forgotten */
    MPI_Barrier(world);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void counters(void) {
    /* What counters and locks of programs are made of: right. The bad one reads them by a get. */
    int one = 1, none = 0, got = 0, seen = 0;
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    MPI_Fetch_and_op(&one, &got, MPI_INT, 0, 0, MPI_SUM, win); /* counters */
    MPI_Compare_and_swap(&one, &none, &got, MPI_INT, 0, 1, win);
    if (bad && rank == 0)
        MPI_Get(&seen, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* counters */
    else
        MPI_Fetch_and_op(NULL, &seen, MPI_INT, 0, 0, MPI_NO_OP, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void origin_flushed(void) {
    int a = 0;
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    MPI_Accumulate(&a, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_SUM, win); /* origin_flushed */
    if (!bad)
        MPI_Win_flush_local(rank, win);
    a = 1;
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

static void with_request(void) {
    int a = 1, b[2] = {0};
    MPI_Request request;
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Rget(&b[0], 1, MPI_INT, 0, 3, 1, MPI_INT, win, &request);
    MPI_Wait(&request, HERE);
    MPI_Rput(&a, 1, MPI_INT, 0, 3, 1, MPI_INT, win, &request); /* with_request */
    MPI_Wait(&request, HERE);
    a = 2;
    if (bad)
        MPI_Get(&b[1], 1, MPI_INT, 0, 3, 1, MPI_INT, win); /* with_request */
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
}

/* Epochs. */

static void no_epoch(void) {
    int a = 0;
    MPI_Win win = window();
    if (!bad)
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Put(&a, rank == 1, MPI_INT, 0, 0, rank == 1, MPI_INT, win); /* no_epoch */
    if (!bad)
        MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
}

static void other_target(void) {
    int a = 0;
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&a, 1, MPI_INT, bad ? 1 : 0, 0, 1, MPI_INT, win); /* other_target */
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
}

static void unlock_twice(void) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Win_unlock(0, win);
    if (bad)
        MPI_Win_unlock(0, win); /* unlock_twice */
    MPI_Win_free(&win);
}

static void free_in_epoch(void) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    if (bad) {
        MPI_Win free_too_early = win;
        MPI_Win_free(&free_too_early); /* free_in_epoch */
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void fence_in_epoch(void) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    if (bad)
        MPI_Win_fence(0, win); /* fence_in_epoch */
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

/* Memory. */

static void range(void) {
    int a[2] = {0};
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Get(a, 2, MPI_INT, (rank + 1) % size, bad ? N - 1 : N - 2, 2, MPI_INT, win); /* range */
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
}

static __attribute__((noinline)) MPI_Win on_the_stack(int *outer) {
    int inner[4096];
    MPI_Win win;
    memset(inner, 0, sizeof inner);
    MPI_Win_create(bad ? inner : outer, sizeof inner, sizeof(int), MPI_INFO_NULL, world, &win);
    MPI_Win_fence(0, win);
    return win;
}

static void local_variable(void) {
    int outer[4096];
    MPI_Win win = on_the_stack(outer);
    MPI_Win_fence(0, win); /* local_variable */
    MPI_Win_free(&win);
}

static void unmapped(void) {
    size_t bytes = 1 << 20;
    int *mine = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Win win;
    MPI_Win_create(mine, (MPI_Aint)bytes, sizeof(int), MPI_INFO_NULL, world, &win);
    MPI_Win_fence(0, win);
    if (bad)
        munmap(mine, bytes);
    MPI_Win_fence(0, win); /* unmapped */
    MPI_Win_free(&win);
    if (!bad)
        munmap(mine, bytes);
}

static void attached(void) {
    size_t bytes = 1 << 20;
    int *mine = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Win win;
    MPI_Win_create_dynamic(MPI_INFO_NULL, world, &win);
    MPI_Win_attach(win, mine, (MPI_Aint)bytes);
    if (!bad)
        MPI_Win_detach(win, mine);
    munmap(mine, bytes);
    MPI_Win_fence(0, win); /* attached */
    MPI_Win_free(&win);
}

#define CASE(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    CASE(put_put), CASE(put_get), CASE(put_twice), CASE(put_accumulate), CASE(two_operations), CASE(two_types),
    CASE(columns), CASE(fence_between), CASE(local_store), CASE(origin_changed), CASE(noprecede), CASE(started_put),
    CASE(shared_locks), CASE(put_then_get), CASE(flush_forgotten), CASE(counters), CASE(origin_flushed),
    CASE(with_request), CASE(no_epoch), CASE(other_target), CASE(unlock_twice), CASE(free_in_epoch),
    CASE(fence_in_epoch), CASE(range), CASE(local_variable), CASE(unmapped), CASE(attached),
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    world = MPI_COMM_WORLD;
    bad = argc > 1 && strcmp(argv[1], "bad") == 0;
    MPI_Win_create_errhandler(complain, &handler);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int wanted = argc == 2;
        for (int arg = 2; arg < argc; arg++)
            wanted |= strcmp(argv[arg], cases[i].name) == 0;
        if (wanted)
            cases[i].run();
    }
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return 0;
}
