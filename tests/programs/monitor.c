/* Transfers whose number and bytes are known; argv[1] says which. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

/* All ways to send, between ranks that a formula chooses, on the world and on a communicator with other numbers. */
static void messages(void) {
    MPI_Comm turned;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    static char out[300000], in[300000];
    char *room = malloc(1 << 20);
    MPI_Buffer_attach(room, 1 << 20);
    for (int round = 0; round < 40; round++) {
        MPI_Comm comm = round % 3 ? MPI_COMM_WORLD : turned;
        int me, bytes = (round * 7919) % (round % 5 == 4 ? 290000 : 3000);
        MPI_Comm_rank(comm, &me);
        int right = (me + 1 + round % (size > 1 ? size - 1 : 1)) % size;
        int left = (me - 1 - round % (size > 1 ? size - 1 : 1) + 2 * size) % size;
        MPI_Request in_request, out_request = MPI_REQUEST_NULL;
        MPI_Irecv(in, sizeof in, MPI_CHAR, left, round, comm, &in_request);
        switch (round % 6) {
        case 0: MPI_Isend(out, bytes, MPI_CHAR, right, round, comm, &out_request); break;
        case 1: MPI_Send(out, bytes / 4, MPI_INT, right, round, comm); break;
        case 2: MPI_Issend(out, bytes, MPI_BYTE, right, round, comm, &out_request); break;
        case 3: MPI_Bsend(out, bytes, MPI_CHAR, right, round, comm); break;
        case 4: MPI_Ssend(out, bytes / 8, MPI_DOUBLE, right, round, comm); break;
        default: MPI_Rsend(out, bytes, MPI_CHAR, right, round, comm);
        }
        MPI_Wait(&out_request, MPI_STATUS_IGNORE);
        MPI_Wait(&in_request, MPI_STATUS_IGNORE);
        MPI_Sendrecv(out, 10, MPI_CHAR, right, 1, in, 10, MPI_CHAR, left, 1, comm, MPI_STATUS_IGNORE);
        MPI_Sendrecv_replace(out, 20, MPI_CHAR, right, 2, left, 2, comm, MPI_STATUS_IGNORE);
        MPI_Send(out, 1, MPI_CHAR, MPI_PROC_NULL, 1, comm);
    }
    void *detached;
    int length;
    MPI_Buffer_detach(&detached, &length);
    free(room);
    MPI_Comm_free(&turned);
}

/* A reduction that goes up a tree: 8192 bytes are too many for the collective cell. */
static void reduce(void) {
    static char out[8192], in[8192];
    MPI_Reduce(out, in, sizeof out, MPI_CHAR, MPI_MAX, 0, MPI_COMM_WORLD);
}

/* Through the collective cell: 3 barriers, 2 reductions of 8 bytes to everybody, 1 to rank 1, 1 broadcast of 100 bytes from rank 0. */
static void cell(void) {
    double value = rank, result;
    char data[100] = {0};
    for (int i = 0; i < 3; i++) MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce(&value, &result, 1, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
    MPI_Bcast(data, sizeof data, MPI_CHAR, 0, MPI_COMM_WORLD);
}

/* Each rank r puts 1000 bytes to r + 1, gets 300 from r + 2, accumulates 8 and fetches 8 at r + 1. */
static void one_sided(void) {
    MPI_Win window;
    char *memory, bytes[1000] = {0};
    long one = 1, before;
    int next = (rank + 1) % size;
    MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_fence(0, window);
    MPI_Put(bytes, 1000, MPI_CHAR, next, 0, 1000, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    MPI_Get(bytes, 300, MPI_CHAR, (rank + 2) % size, 0, 300, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    MPI_Accumulate(&one, 1, MPI_LONG, next, 2000, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_fence(0, window);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, next, 2000, MPI_SUM, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

/* Goes on until a file says that it is enough. */
static void endless(const char *file) {
    int value = rank, go = 1;
    if (rank == 0) puts("ready"), fflush(stdout);
    while (go) {
        MPI_Sendrecv_replace(&value, 1, MPI_INT, (rank + 1) % size, 1, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
        if (rank == 0) go = access(file, F_OK) != 0;
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (rank == 0) usleep(200);
    }
}

#define CHECK(WHAT)                                                                                                    \
    do {                                                                                                               \
        int code = (WHAT);                                                                                             \
        if (code != MPI_SUCCESS) printf("rank %d, line %d: %s gives %d\n", rank, __LINE__, #WHAT, code), MPI_Abort(MPI_COMM_WORLD, 1); \
    } while (0)

/* Figure 1 of the paper on Open MPI's monitoring: a phase of the program is monitored through MPI_T. */
static void tool(const char *messages_name, const char *bytes_name, int message_class, int byte_class) {
    int provided, count_index, size_index, values;
    MPI_T_pvar_session session, other;
    MPI_T_pvar_handle count_handle, size_handle, other_handle;
    MPI_Comm comm = MPI_COMM_WORLD;
    unsigned long long *counts = calloc(size, sizeof *counts), *sizes = calloc(size, sizeof *sizes);
    unsigned long long *most = calloc(size, sizeof *most);
    char data[1000] = {0};
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    CHECK(MPI_T_pvar_get_index(messages_name, message_class, &count_index));
    CHECK(MPI_T_pvar_get_index(bytes_name, byte_class, &size_index));
    CHECK(MPI_T_pvar_session_create(&session));
    CHECK(MPI_T_pvar_session_create(&other));
    CHECK(MPI_T_pvar_handle_alloc(session, count_index, &comm, &count_handle, &values));
    if (values != size) printf("%d values for %d ranks\n", values, size);
    CHECK(MPI_T_pvar_handle_alloc(session, size_index, &comm, &size_handle, &values));
    CHECK(MPI_T_pvar_handle_alloc(other, count_index, &comm, &other_handle, &values));
    MPI_Sendrecv_replace(data, 1000, MPI_CHAR, right, 1, left, 1, comm, MPI_STATUS_IGNORE); /* before: not counted */
    CHECK(MPI_T_pvar_start(session, count_handle));
    CHECK(MPI_T_pvar_start(session, size_handle));
    for (int i = 0; i < 5; i++)
        MPI_Sendrecv_replace(data, 100 * (i + 1), MPI_CHAR, right, 1, left, 1, comm, MPI_STATUS_IGNORE);
    CHECK(MPI_T_pvar_start(other, other_handle));
    MPI_Sendrecv_replace(data, 7, MPI_CHAR, left, 1, right, 1, comm, MPI_STATUS_IGNORE);
    CHECK(MPI_T_pvar_stop(session, count_handle));
    CHECK(MPI_T_pvar_stop(session, size_handle));
    MPI_Sendrecv_replace(data, 1000, MPI_CHAR, right, 1, left, 1, comm, MPI_STATUS_IGNORE); /* after */
    CHECK(MPI_T_pvar_read(session, count_handle, counts));
    CHECK(MPI_T_pvar_read(session, size_handle, sizes));
    MPI_Allreduce(counts, most, size, MPI_UNSIGNED_LONG_LONG, MPI_MAX, comm);
    for (int to = 0; to < size; to++)
        printf("%d to %d: %llu messages, %llu bytes, at most %llu\n", rank, to, counts[to], sizes[to], most[to]);
    CHECK(MPI_T_pvar_read(other, other_handle, counts));
    printf("%d, the other session: %llu right, %llu left\n", rank, counts[right], counts[left]);
    CHECK(MPI_T_pvar_reset(session, count_handle));
    CHECK(MPI_T_pvar_read(session, count_handle, counts));
    printf("%d, after the reset: %llu\n", rank, counts[right]);
    CHECK(MPI_T_pvar_handle_free(session, &count_handle));
    CHECK(MPI_T_pvar_session_free(&session));
    CHECK(MPI_T_pvar_session_free(&other));
    CHECK(MPI_T_finalize());
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(what, "messages")) messages();
    else if (!strcmp(what, "reduce")) reduce();
    else if (!strcmp(what, "cell")) cell();
    else if (!strcmp(what, "one-sided")) one_sided();
    else if (!strcmp(what, "endless")) endless(argv[2]);
    else if (!strcmp(what, "tool")) tool("vmpi_messages_to", "vmpi_bytes_to", MPI_T_PVAR_CLASS_COUNTER, MPI_T_PVAR_CLASS_AGGREGATE);
    else if (!strcmp(what, "tool-openmpi"))
        tool("pml_monitoring_messages_count", "pml_monitoring_messages_size", MPI_T_PVAR_CLASS_SIZE, MPI_T_PVAR_CLASS_SIZE);
    else MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}
