/* What MPICH 4.1 to 5 has beyond Debian's 4.0: constants by the numbers of its header, hints, and extensions; the same under MPICH 5.0.2. */
#include "t.h"
#include "newer.h"

#define NEIGHBORHOOD 5 /* MPIX_COMM_TYPE_NEIGHBORHOOD, which was 4 */
#if MPI_VERSION < 5
typedef int MPIX_Grequest_class;
typedef int(MPIX_Grequest_poll_function)(void *, MPI_Status *);
typedef int(MPIX_Grequest_wait_function)(int, void **, double, MPI_Status *);
typedef struct { void *iov_base; MPI_Aint iov_len; } MPIX_Iov;
NEWER int MPIX_Type_iov_len(MPI_Datatype, MPI_Count, MPI_Count *, MPI_Count *);
NEWER int MPIX_Type_iov(MPI_Datatype, MPI_Count, MPIX_Iov *, MPI_Count, MPI_Count *);
int MPIX_Grequest_start(MPI_Grequest_query_function *, MPI_Grequest_free_function *, MPI_Grequest_cancel_function *, MPIX_Grequest_poll_function *, MPIX_Grequest_wait_function *, void *, MPI_Request *);
int MPIX_Grequest_class_create(MPI_Grequest_query_function *, MPI_Grequest_free_function *, MPI_Grequest_cancel_function *, MPIX_Grequest_poll_function *, MPIX_Grequest_wait_function *, MPIX_Grequest_class *);
int MPIX_Grequest_class_allocate(MPIX_Grequest_class, void *, MPI_Request *);
#endif

static void environment(void) {
    PART("environment");
    int version, minor, size = -1, flag;
    char value[64] = "";
    MPI_Get_version(&version, &minor);
    OK(version == 5 && minor == 0);
    MPI_Comm c = MPI_COMM_NULL;
    MPI_Info hints, told;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "mpi_hw_resource_type", "mpi_shared_memory");
    EQ(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, hints, &c), MPI_SUCCESS);
    MPI_Comm_size(c, &size);
    EQ(size, t_size);
    MPI_Comm_free(&c);
    EQ(MPI_Comm_split_type(MPI_COMM_WORLD, NEIGHBORHOOD, 0, MPI_INFO_NULL, &c), MPI_SUCCESS);
    OK(c == MPI_COMM_NULL);
    MPI_Info_set(hints, "mpi_assert_strict_persistent_collective_ordering", "true");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, hints, &c);
    MPI_Comm_get_info(c, &told);
    MPI_Info_get(told, "mpi_assert_strict_persistent_collective_ordering", 63, value, &flag);
    OK(flag && !strcmp(value, "true"));
    MPI_Info_free(&told);
    MPI_Comm_free(&c);
    MPI_Comm_get_info(MPI_COMM_WORLD, &told);
    MPI_Info_get(told, "mpi_assert_strict_persistent_collective_ordering", 63, value, &flag);
    OK(flag && !strcmp(value, "false"));
    MPI_Info_free(&told);
    MPI_Info_free(&hints);
}

static void pieces(void) {
    PART("pieces of memory");
    MPI_Datatype vector, whole;
    MPIX_Iov piece[4];
    MPI_Count pieces = -1, bytes = -1;
    MPI_Type_vector(5, 2, 3, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    EQ(MPIX_Type_iov_len(vector, 1000, &pieces, &bytes), MPI_SUCCESS);
    OK(pieces == 5 && bytes == 40);
    MPIX_Type_iov_len(vector, 23, &pieces, &bytes);
    OK(pieces == 2 && bytes == 16);
    EQ(MPIX_Type_iov(vector, 1, piece, 2, &pieces), MPI_SUCCESS);
    OK(pieces == 2 && (char *)piece[0].iov_base - (char *)0 == 12 && piece[1].iov_len == 8 && (char *)piece[1].iov_base - (char *)0 == 24);
    MPIX_Type_iov(vector, 3, piece, 4, &pieces);
    OK(pieces == 2 && (char *)piece[1].iov_base - (char *)0 == 48);
    MPI_Type_contiguous(7, MPI_DOUBLE, &whole);
    MPI_Type_commit(&whole);
    MPIX_Type_iov_len(whole, 1000, &pieces, &bytes);
    OK(pieces == 1 && bytes == 56);
    MPI_Type_free(&vector);
    MPI_Type_free(&whole);
}

struct work { int left, polled, freed; MPI_Request request; };

static int query(void *state, MPI_Status *status) {
    MPI_Status_set_elements(status, MPI_INT, ((struct work *)state)->polled > 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}
static int end(void *state) {
    ((struct work *)state)->freed++;
    return MPI_SUCCESS;
}
static int cancel(void *state, int complete) { return MPI_SUCCESS; }
static int poll_work(void *state, MPI_Status *status) {
    struct work *work = state;
    work->polled++;
    return --work->left ? MPI_SUCCESS : MPI_Grequest_complete(work->request);
}

static int wait_for_work(int count, void **states, double seconds, MPI_Status *status) {
    for (int i = 0; i < count; i++)
        while (((struct work *)states[i])->left > 0) poll_work(states[i], status);
    return MPI_SUCCESS;
}

/* Nobody but the library asks the requests to go on. */
static void polled(void) {
    PART("generalized requests that are polled");
    struct work one = {3}, two = {2}, three = {40};
    MPI_Request both[2];
    MPI_Status status;
    MPIX_Grequest_class class;
    int flag = 0, count = -1, tests = 0;
    EQ(MPIX_Grequest_start(query, end, cancel, poll_work, wait_for_work, &one, &one.request), MPI_SUCCESS);
    both[0] = one.request;
    EQ(MPI_Wait(&both[0], &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    OK(count == 1 && one.left == 0 && one.freed == 1 && both[0] == MPI_REQUEST_NULL);
    EQ(MPIX_Grequest_class_create(query, end, cancel, poll_work, wait_for_work, &class), MPI_SUCCESS);
    MPIX_Grequest_class_allocate(class, &two, &two.request);
    MPIX_Grequest_class_allocate(class, &three, &three.request);
    both[0] = two.request, both[1] = three.request;
    while (!flag && ++tests < 1000) MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE);
    OK(flag && two.freed == 1 && three.freed == 1);
    /* With a message beside it. */
    one = (struct work){5};
    MPIX_Grequest_start(query, end, cancel, poll_work, wait_for_work, &one, &one.request);
    both[0] = one.request;
    int in = -1, out = t_rank;
    MPI_Irecv(&in, 1, MPI_INT, (t_rank + t_size - 1) % t_size, 1, MPI_COMM_WORLD, &both[1]);
    MPI_Send(&out, 1, MPI_INT, (t_rank + 1) % t_size, 1, MPI_COMM_WORLD);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    OK(in == (t_rank + t_size - 1) % t_size && one.freed == 1);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    environment();
    pieces();
    polled();
    return t_end();
}
