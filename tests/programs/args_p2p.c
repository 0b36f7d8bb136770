/* Point-to-point: each wrong argument of each call and its class; PROC_NULL, zero counts, truncation in each way of completion. */
#include "args.h"

typedef int blocking(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int starting(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static MPI_Datatype uncommitted;
static int v[4];

static void sends(void) {
    PART("sends");
    blocking *calls[] = {MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend};
    starting *starts[] = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend, MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};
    MPI_Comm w = MPI_COMM_WORLD;
    for (int i = 0; i < 4; i++) {
        IS(MPI_ERR_COMM, calls[i](v, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
        IS(MPI_ERR_COUNT, calls[i](v, -1, MPI_INT, 0, 0, w));
        IS(MPI_ERR_TYPE, calls[i](v, 1, MPI_DATATYPE_NULL, 0, 0, w));
        IS(MPI_ERR_TYPE, calls[i](v, 1, uncommitted, 0, 0, w));
        IS(MPI_ERR_RANK, calls[i](v, 1, MPI_INT, t_size, 0, w));
        IS(MPI_ERR_RANK, calls[i](v, 1, MPI_INT, -100, 0, w));
        IS(MPI_ERR_TAG, calls[i](v, 1, MPI_INT, 0, -100, w));
        FINE(calls[i](v, 1, MPI_INT, MPI_PROC_NULL, 0, w));
        FINE(calls[i](NULL, 0, MPI_INT, MPI_PROC_NULL, 0, w));
    }
    for (int i = 0; i < 8; i++) {
        MPI_Request q = MPI_REQUEST_NULL;
        MPI_Status s;
        int flag = -1;
        IS(MPI_ERR_COMM, starts[i](v, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &q));
        IS(MPI_ERR_COUNT, starts[i](v, -1, MPI_INT, 0, 0, w, &q));
        IS(MPI_ERR_TYPE, starts[i](v, 1, MPI_DATATYPE_NULL, 0, 0, w, &q));
        MUST(MPI_ERR_TYPE, starts[i](v, 1, uncommitted, 0, 0, w, &q));
        IS(MPI_ERR_RANK, starts[i](v, 1, MPI_INT, t_size, 0, w, &q));
        IS(MPI_ERR_TAG, starts[i](v, 1, MPI_INT, 0, -100, w, &q));
        FINE(starts[i](v, 1, MPI_INT, MPI_PROC_NULL, 7, w, &q));
        if (i >= 4) {
            /* An inactive request is complete, and a null one too. */
            FINE(MPI_Test(&q, &flag, &s));
            OK(flag == 1 && q != MPI_REQUEST_NULL);
            FINE(MPI_Start(&q));
        }
        FINE(MPI_Wait(&q, &s));
        if (i >= 4) {
            OK(q != MPI_REQUEST_NULL);
            FINE(MPI_Request_free(&q));
        }
        OK(q == MPI_REQUEST_NULL);
        FINE(MPI_Wait(&q, &s));
        OK(s.MPI_SOURCE == MPI_ANY_SOURCE && s.MPI_TAG == MPI_ANY_TAG);
    }
}

/* The status of a receive from nobody. (MPICH 4.0.2 writes none in MPI_Mrecv and MPI_Imrecv.) */
static void nobody(MPI_Status *s, int line) {
    int n = -1;
    MPI_Get_count(s, MPI_INT, &n);
    int right = s->MPI_SOURCE == MPI_PROC_NULL && s->MPI_TAG == MPI_ANY_TAG && n == 0;
    t_check(right || !VMPI, "from nobody", __FILE__, line, s->MPI_SOURCE, n);
    memset(s, 7, sizeof *s);
}

static void receives(void) {
    PART("receives");
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Status s;
    MPI_Request q = MPI_REQUEST_NULL;
    MPI_Message m;
    int flag, n;
    IS(MPI_ERR_COMM, MPI_Recv(v, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &s));
    IS(MPI_ERR_COUNT, MPI_Recv(v, -1, MPI_INT, 0, 0, w, &s));
    IS(MPI_ERR_TYPE, MPI_Recv(v, 1, uncommitted, 0, 0, w, &s));
    IS(MPI_ERR_RANK, MPI_Recv(v, 1, MPI_INT, -100, 0, w, &s));
    IS(MPI_ERR_TAG, MPI_Recv(v, 1, MPI_INT, 0, -100, w, &s));
    IS(MPI_ERR_COUNT, MPI_Irecv(v, -1, MPI_INT, 0, 0, w, &q));
    IS(MPI_ERR_RANK, MPI_Irecv(v, 1, MPI_INT, t_size, 0, w, &q));
    IS(MPI_ERR_TAG, MPI_Irecv(v, 1, MPI_INT, 0, -100, w, &q));
    IS(MPI_ERR_COUNT, MPI_Recv_init(v, -1, MPI_INT, 0, 0, w, &q));
    IS(MPI_ERR_RANK, MPI_Recv_init(v, 1, MPI_INT, t_size, 0, w, &q));
    IS(MPI_ERR_TYPE, MPI_Recv_init(v, 1, MPI_DATATYPE_NULL, 0, 0, w, &q));
    ONLY(MPI_ERR_COMM, MPI_Probe(0, 0, MPI_COMM_NULL, &s));
    IS(MPI_ERR_RANK, MPI_Iprobe(-100, 0, w, &flag, &s));
    IS(MPI_ERR_TAG, MPI_Probe(0, -100, w, &s));
    IS(MPI_ERR_RANK, MPI_Mprobe(t_size, 0, w, &m, &s));
    IS(MPI_ERR_TAG, MPI_Improbe(0, -100, w, &flag, &m, &s));
    ONLY(MPI_ERR_COMM, MPI_Mprobe(0, 0, MPI_COMM_NULL, &m, &s));
    m = MPI_MESSAGE_NULL;
    ONLY(MPI_ERR_REQUEST, MPI_Mrecv(v, 1, MPI_INT, &m, &s));
    IS(MPI_ERR_COUNT, MPI_Sendrecv(v, -1, MPI_INT, 0, 0, v + 1, 1, MPI_INT, 0, 0, w, &s));
    IS(MPI_ERR_COUNT, MPI_Sendrecv(v, 1, MPI_INT, 0, 0, v + 1, -1, MPI_INT, 0, 0, w, &s));
    IS(MPI_ERR_RANK, MPI_Sendrecv(v, 1, MPI_INT, t_size, 0, v + 1, 1, MPI_INT, 0, 0, w, &s));
    IS(MPI_ERR_RANK, MPI_Sendrecv(v, 1, MPI_INT, 0, 0, v + 1, 1, MPI_INT, t_size, 0, w, &s));
    IS(MPI_ERR_TAG, MPI_Sendrecv(v, 1, MPI_INT, 0, -100, v + 1, 1, MPI_INT, 0, 0, w, &s));
    IS(MPI_ERR_TAG, MPI_Sendrecv(v, 1, MPI_INT, 0, 0, v + 1, 1, MPI_INT, 0, -100, w, &s));
    IS(MPI_ERR_TYPE, MPI_Sendrecv_replace(v, 1, uncommitted, 0, 0, 0, 0, w, &s));
    IS(MPI_ERR_COUNT, MPI_Sendrecv_replace(v, -1, MPI_INT, 0, 0, 0, 0, w, &s));
    IS(MPI_ERR_RANK, MPI_Sendrecv_replace(v, 1, MPI_INT, t_size, 0, 0, 0, w, &s));

    PART("from MPI_PROC_NULL");
#define NOBODY() nobody(&s, __LINE__)
    FINE(MPI_Recv(v, 1, MPI_INT, MPI_PROC_NULL, 3, w, &s)), NOBODY();
    FINE(MPI_Irecv(v, 1, MPI_INT, MPI_PROC_NULL, 3, w, &q)), FINE(MPI_Wait(&q, &s)), NOBODY();
    FINE(MPI_Recv_init(v, 1, MPI_INT, MPI_PROC_NULL, 3, w, &q)), FINE(MPI_Start(&q)), FINE(MPI_Wait(&q, &s)), NOBODY();
    FINE(MPI_Request_free(&q));
    FINE(MPI_Probe(MPI_PROC_NULL, 3, w, &s)), NOBODY();
    FINE(MPI_Iprobe(MPI_PROC_NULL, 3, w, &flag, &s)), OK(flag), NOBODY();
    FINE(MPI_Mprobe(MPI_PROC_NULL, 3, w, &m, &s)), OK(m == MPI_MESSAGE_NO_PROC), NOBODY();
    FINE(MPI_Mrecv(v, 1, MPI_INT, &m, &s)), OK(m == MPI_MESSAGE_NULL), NOBODY();
    FINE(MPI_Improbe(MPI_PROC_NULL, 3, w, &flag, &m, &s)), OK(flag && m == MPI_MESSAGE_NO_PROC), NOBODY();
    FINE(MPI_Imrecv(v, 1, MPI_INT, &m, &q)), FINE(MPI_Wait(&q, &s)), NOBODY();
    FINE(MPI_Sendrecv(v, 1, MPI_INT, MPI_PROC_NULL, 0, v + 1, 1, MPI_INT, MPI_PROC_NULL, 0, w, &s)), NOBODY();
    FINE(MPI_Sendrecv_replace(v, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, w, &s)), NOBODY();
}

/* A message of three ints for a buffer of one, and of no elements, received in each way. */
static void truncation(void) {
    PART("truncation");
    MPI_Comm c = MPI_COMM_SELF;
    MPI_Request q, send;
    MPI_Message m;
    MPI_Status s;
    int many[3] = {1, 2, 3}, one[3], flag, index, indices[1], n;
    for (int way = 0; way < 9; way++) {
        one[1] = one[2] = -5;
        MPI_Isend(many, 3, MPI_INT, 0, 4, c, &send);
        switch (way) {
        case 0: IS(MPI_ERR_TRUNCATE, MPI_Recv(one, 1, MPI_INT, 0, 4, c, &s)); break;
        case 1: MPI_Irecv(one, 1, MPI_INT, 0, 4, c, &q), IS(MPI_ERR_TRUNCATE, MPI_Wait(&q, &s)); break;
        case 2:
            MPI_Irecv(one, 1, MPI_INT, 0, 4, c, &q);
            int code;
            do code = MPI_Test(&q, &flag, &s); while (code == MPI_SUCCESS && !flag);
            IS(MPI_ERR_TRUNCATE, code);
            break;
        case 3: MPI_Mprobe(0, 4, c, &m, &s), IS(MPI_ERR_TRUNCATE, MPI_Mrecv(one, 1, MPI_INT, &m, &s)); break;
        case 4: MPI_Mprobe(0, 4, c, &m, &s), MPI_Imrecv(one, 1, MPI_INT, &m, &q), IS(MPI_ERR_TRUNCATE, MPI_Wait(&q, &s)); break;
        case 5: MPI_Irecv(one, 1, MPI_INT, 0, 4, c, &q), IS(MPI_ERR_TRUNCATE, MPI_Waitany(1, &q, &index, &s)); break;
        case 6: /* MPI_ERR_IN_STATUS, and in the status why */
            MPI_Irecv(one, 1, MPI_INT, 0, 4, c, &q);
            code = class_of(MPI_Waitsome(1, &q, &n, indices, &s));
            STRICT(code == MPI_ERR_IN_STATUS && n == 1 && class_of(s.MPI_ERROR) == MPI_ERR_TRUNCATE);
            break;
        case 7: MPI_Recv_init(one, 1, MPI_INT, 0, 4, c, &q), MPI_Start(&q), IS(MPI_ERR_TRUNCATE, MPI_Wait(&q, &s)), MPI_Request_free(&q); break;
        case 8: IS(MPI_ERR_TRUNCATE, MPI_Recv(NULL, 0, MPI_INT, 0, 4, c, &s)); break;
        }
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        OK(one[1] == -5 && one[2] == -5); /* nothing behind the buffer */
    }
    /* A shorter message and an empty one are fine. */
    MPI_Isend(many, 0, MPI_INT, 0, 4, c, &send);
    FINE(MPI_Recv(one, 3, MPI_INT, 0, 4, c, &s));
    MPI_Get_count(&s, MPI_INT, &n);
    OK(n == 0 && s.MPI_SOURCE == 0 && s.MPI_TAG == 4);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
}

static void completion(void) {
    PART("completion");
    MPI_Request none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL}, q;
    MPI_Status s[3];
    int index, flag, n, indices[3];
    IS(MPI_ERR_REQUEST, MPI_Start(none));
    IS(MPI_ERR_REQUEST, MPI_Cancel(none));
    IS(MPI_ERR_REQUEST, MPI_Request_free(none));
    FINE(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    FINE(MPI_Waitall(3, none, s));
    OK(s[1].MPI_SOURCE == MPI_ANY_SOURCE && s[1].MPI_TAG == MPI_ANY_TAG);
    FINE(MPI_Waitany(3, none, &index, s)), EQ(index, MPI_UNDEFINED);
    FINE(MPI_Waitany(0, none, &index, s)), EQ(index, MPI_UNDEFINED);
    FINE(MPI_Testany(3, none, &index, &flag, s)), OK(flag && index == MPI_UNDEFINED);
    FINE(MPI_Testall(3, none, &flag, s)), OK(flag);
    FINE(MPI_Waitsome(3, none, &n, indices, s)), EQ(n, MPI_UNDEFINED);
    FINE(MPI_Testsome(3, none, &n, indices, s)), EQ(n, MPI_UNDEFINED);
    FINE(MPI_Request_get_status(none[0], &flag, s)), OK(flag && s[0].MPI_SOURCE == MPI_ANY_SOURCE);
    EITHER(MPI_ERR_COUNT, MPI_ERR_ARG, MPI_Waitall(-1, none, s));
    EITHER(MPI_ERR_COUNT, MPI_ERR_ARG, MPI_Waitany(-1, none, &index, s));
    EITHER(MPI_ERR_COUNT, MPI_ERR_ARG, MPI_Waitsome(-1, none, &n, indices, s));
    EITHER(MPI_ERR_COUNT, MPI_ERR_ARG, MPI_Startall(-1, none));
    /* A persistent receive that is active cannot be started again. */
    MPI_Recv_init(v, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &q);
    MPI_Start(&q);
    MUST(MPI_ERR_REQUEST, MPI_Start(&q));
    MPI_Cancel(&q), MPI_Wait(&q, s);
    MPI_Test_cancelled(s, &flag), OK(flag);
    MPI_Request_free(&q);
    /* Isend's requests cannot be started. */
    MPI_Irecv(v, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &q);
    MUST(MPI_ERR_REQUEST, MPI_Start(&q));
    MPI_Cancel(&q), MPI_Wait(&q, s);
}

static void buffers(void) {
    PART("buffers");
    static char room[2000];
    void *p;
    int size;
    IS(MPI_ERR_BUFFER, MPI_Bsend(v, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
    IS(MPI_ERR_ARG, MPI_Buffer_attach(room, -1));
    FINE(MPI_Buffer_attach(room, sizeof room));
    IS(MPI_ERR_BUFFER, MPI_Buffer_attach(room, 10));
    IS(MPI_ERR_BUFFER, MPI_Bsend(room, sizeof room + 1, MPI_CHAR, 0, 1, MPI_COMM_SELF));
    FINE(MPI_Buffer_detach(&p, &size));
    OK(p == room && size == sizeof room);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    sends(), receives(), truncation(), completion(), buffers();
    MPI_Type_free(&uncommitted);
    return t_end();
}
