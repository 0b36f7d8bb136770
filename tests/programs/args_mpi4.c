/* MPI 4: partitioned messages, sessions, the tool interface, generalized requests: each wrong argument and its class. */
#include "args.h"
#include "newer.h"
static int v[8];
static MPI_Comm w;

static void partitions(void) {
    PART("partitioned messages");
    MPI_Request s = MPI_REQUEST_NULL, r = MPI_REQUEST_NULL, plain;
    MPI_Datatype uncommitted;
    int flag, some[2] = {0, 9};
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    IS(MPI_ERR_COMM, MPI_Psend_init(v, 2, 1, MPI_INT, 0, 0, MPI_COMM_NULL, MPI_INFO_NULL, &s));
    IS(MPI_ERR_COUNT, MPI_Psend_init(v, 2, -1, MPI_INT, 0, 0, w, MPI_INFO_NULL, &s));
    IS(MPI_ERR_TYPE, MPI_Psend_init(v, 2, 1, MPI_DATATYPE_NULL, 0, 0, w, MPI_INFO_NULL, &s));
    IS(MPI_ERR_TYPE, MPI_Psend_init(v, 2, 1, uncommitted, 0, 0, w, MPI_INFO_NULL, &s));
    IS(MPI_ERR_RANK, MPI_Psend_init(v, 2, 1, MPI_INT, t_size, 0, w, MPI_INFO_NULL, &s));
    IS(MPI_ERR_TAG, MPI_Psend_init(v, 2, 1, MPI_INT, 0, -100, w, MPI_INFO_NULL, &s));
    IS(MPI_ERR_RANK, MPI_Precv_init(v, 2, 1, MPI_INT, MPI_ANY_SOURCE, 0, w, MPI_INFO_NULL, &r)); /* no wildcards */
    IS(MPI_ERR_TAG, MPI_Precv_init(v, 2, 1, MPI_INT, 0, MPI_ANY_TAG, w, MPI_INFO_NULL, &r));
    OK(MPI_Psend_init(v, -2, 1, MPI_INT, 0, 0, w, MPI_INFO_NULL, &s) != MPI_SUCCESS);
    IS(MPI_ERR_REQUEST, MPI_Pready(0, MPI_REQUEST_NULL));
    IS(MPI_ERR_REQUEST, MPI_Pready_range(0, 1, MPI_REQUEST_NULL));
    FINE(MPI_Psend_init(v, 4, 1, MPI_INT, t_rank, 0, w, MPI_INFO_NULL, &s));
    FINE(MPI_Precv_init(v + 4, 4, 1, MPI_INT, t_rank, 0, w, MPI_INFO_NULL, &r));
    FINE(MPI_Startall(2, (MPI_Request[]){s, r}));
    OK(MPI_Pready(4, s) != MPI_SUCCESS && MPI_Pready(-1, s) != MPI_SUCCESS);
    OK(MPI_Pready_range(2, 1, s) != MPI_SUCCESS && MPI_Pready_range(2, 4, s) != MPI_SUCCESS);
    OK(MPI_Pready_list(2, some, s) != MPI_SUCCESS);
    IS(MPI_ERR_REQUEST, MPI_Pready(0, r));
    IS(MPI_ERR_REQUEST, MPI_Parrived(s, 0, &flag));
    OK(MPI_Parrived(r, 4, &flag) != MPI_SUCCESS);
    MPI_Irecv(v, 1, MPI_INT, t_rank, 99, w, &plain);
    IS(MPI_ERR_REQUEST, MPI_Pready(0, plain));
    MPI_Cancel(&plain), MPI_Wait(&plain, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++) v[i] = 10 + i;
    FINE(MPI_Pready_range(0, 3, s));
    FINE(MPI_Wait(&r, MPI_STATUS_IGNORE)), FINE(MPI_Wait(&s, MPI_STATUS_IGNORE));
    OK(v[4] == 10 && v[7] == 13);
    /* Inactive: nothing can be made ready; everything has arrived. */
    OK(MPI_Pready(0, s) != MPI_SUCCESS);
    FINE(MPI_Parrived(r, 0, &flag)), OK(flag);
    MPI_Request_free(&s), MPI_Request_free(&r);
    /* To and from nobody, and of nothing. */
    FINE(MPI_Psend_init(v, 2, 1, MPI_INT, MPI_PROC_NULL, 0, w, MPI_INFO_NULL, &s));
    FINE(MPI_Start(&s)), FINE(MPI_Pready(0, s)), FINE(MPI_Pready(1, s)), FINE(MPI_Wait(&s, MPI_STATUS_IGNORE)), MPI_Request_free(&s);
    FINE(MPI_Psend_init(NULL, 2, 0, MPI_INT, t_rank, 5, w, MPI_INFO_NULL, &s));
    FINE(MPI_Precv_init(NULL, 2, 0, MPI_INT, t_rank, 5, w, MPI_INFO_NULL, &r));
    FINE(MPI_Start(&s)), FINE(MPI_Start(&r)), FINE(MPI_Pready_range(0, 1, s));
    FINE(MPI_Wait(&s, MPI_STATUS_IGNORE)), FINE(MPI_Wait(&r, MPI_STATUS_IGNORE));
    MPI_Request_free(&s), MPI_Request_free(&r), MPI_Type_free(&uncommitted);
}

static void sessions(void) {
    PART("sessions");
    MPI_Session s;
    MPI_Group g;
    MPI_Comm c;
    MPI_Info info;
    int n, len = 0;
    IS(MPI_ERR_SESSION, MPI_Session_finalize(&(MPI_Session){MPI_SESSION_NULL}));
    IS(MPI_ERR_SESSION, MPI_Session_get_num_psets(MPI_SESSION_NULL, MPI_INFO_NULL, &n));
    IS(MPI_ERR_SESSION, MPI_Group_from_session_pset(MPI_SESSION_NULL, "mpi://WORLD", &g));
    FINE(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    OK(MPI_Group_from_session_pset(s, "mpi://no_such_set", &g) != MPI_SUCCESS);
    OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 1000, &len, NULL) != MPI_SUCCESS);
    OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, -1, &len, NULL) != MPI_SUCCESS);
    OK(MPI_Session_get_pset_info(s, "nothing", &info) != MPI_SUCCESS);
    IS(MPI_ERR_GROUP, MPI_Comm_create_from_group(MPI_GROUP_NULL, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    FINE(MPI_Group_from_session_pset(s, "mpi://SELF", &g));
    MPI_Group_size(g, &n), EQ(n, 1);
    FINE(MPI_Comm_create_from_group(g, "", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    IS(MPI_ERR_RANK, MPI_Send(&n, 1, MPI_INT, 1, 0, c));
    MPI_Comm_free(&c), MPI_Group_free(&g);
    FINE(MPI_Session_finalize(&s)), OK(s == MPI_SESSION_NULL);
}

static int query(void *extra, MPI_Status *s) {
    MPI_Status_set_elements(s, MPI_INT, 3);
    MPI_Status_set_cancelled(s, 0);
    s->MPI_SOURCE = MPI_UNDEFINED, s->MPI_TAG = 17;
    return *(int *)extra;
}
static int release(void *extra) { return *(int *)extra == 0 ? MPI_SUCCESS : MPI_SUCCESS; }
static int cancel(void *extra, int complete) { (void)complete; return *(int *)extra; }

static void generalized(void) {
    PART("generalized requests");
    MPI_Request q;
    MPI_Status s;
    int fine = MPI_SUCCESS, n, flag;
    FINE(MPI_Grequest_start(query, release, cancel, &fine, &q));
    FINE(MPI_Test(&q, &flag, &s)), OK(!flag);
    IS(MPI_ERR_REQUEST, MPI_Start(&q));
    FINE(MPI_Cancel(&q));
    FINE(MPI_Grequest_complete(q));
    FINE(MPI_Request_get_status(q, &flag, &s)), OK(flag && s.MPI_TAG == 17 && q != MPI_REQUEST_NULL);
    FINE(MPI_Wait(&q, &s));
    MPI_Get_count(&s, MPI_INT, &n);
    OK(q == MPI_REQUEST_NULL && s.MPI_TAG == 17 && n == 3);
    MPI_Irecv(v, 1, MPI_INT, 0, 99, MPI_COMM_SELF, &q);
    OK(!VMPI || MPI_Grequest_complete(q) != MPI_SUCCESS);
    MPI_Cancel(&q), MPI_Wait(&q, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    w = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(w, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    partitions(), sessions(), generalized();
    return t_end();
}
