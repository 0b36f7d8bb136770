/* What MPI 4.1 adds: buffers of communicators and sessions, looking at several requests, removal of error codes,
 * hardware resources. */
#include "t.h"
#include "newer.h"

static void buffers(void) {
    PART("buffers");
    int next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size, size, class;
    enum { N = 100000 };
    char *big = malloc(N), *in = malloc(N), *room = malloc(3 * N);
    void *addr;
    MPI_Comm c;
    MPI_Request r;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Bsend(big, N, MPI_CHAR, next, 1, c), &class);
    EQ(class, MPI_ERR_BUFFER);
    t_fill(big, N, t_rank, 1);
    EQ(MPI_Comm_attach_buffer(c, room, 2 * N), MPI_SUCCESS);
    MPI_Error_class(MPI_Comm_attach_buffer(c, room, N), &class);
    EQ(class, MPI_ERR_BUFFER);
    EQ(MPI_Bsend(big, N, MPI_CHAR, next, 1, c), MPI_SUCCESS);
    memset(big, 0, N);
    MPI_Comm_iflush_buffer(c, &r);
    MPI_Recv(in, N, MPI_CHAR, last, 1, c, MPI_STATUS_IGNORE);
    EQ(t_wrong(in, N, last, 1), -1);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EQ(MPI_Comm_flush_buffer(c), MPI_SUCCESS);
    /* The world has no buffer: another communicator's does not serve it. */
    MPI_Error_class(MPI_Bsend(big, N, MPI_CHAR, next, 1, MPI_COMM_WORLD), &class);
    EQ(class, MPI_ERR_BUFFER);
    EQ(MPI_Comm_detach_buffer(c, &addr, &size), MPI_SUCCESS);
    OK(addr == room);
    EQ(size, 2 * N);
    MPI_Error_class(MPI_Comm_detach_buffer(c, &addr, &size), &class);
    EQ(class, MPI_ERR_BUFFER);
    EQ(MPI_Comm_flush_buffer(c), MPI_SUCCESS); /* nothing there to leave, as MPICH 5 says */
    /* Too small. */
    MPI_Buffer_attach(room, N / 2);
    MPI_Error_class(MPI_Bsend(big, N, MPI_CHAR, next, 1, c), &class);
    EQ(class, MPI_ERR_BUFFER);
    EQ(MPI_Buffer_flush(), MPI_SUCCESS);
    MPI_Buffer_iflush(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&addr, &size);
    EQ(size, N / 2);
#ifdef MPI_BUFFER_AUTOMATIC
    EQ(MPI_Comm_attach_buffer(c, MPI_BUFFER_AUTOMATIC, 0), MPI_SUCCESS);
    t_fill(big, N, t_rank, 2);
    for (int i = 0; i < 5; i++) EQ(MPI_Bsend(big, N, MPI_CHAR, next, i, c), MPI_SUCCESS);
    for (int i = 4; i >= 0; i--) {
        MPI_Recv(in, N, MPI_CHAR, last, i, c, MPI_STATUS_IGNORE);
        EQ(t_wrong(in, N, last, 2), -1);
    }
    MPI_Comm_detach_buffer(c, &addr, &size);
    OK(addr == MPI_BUFFER_AUTOMATIC);
    EQ(size, 0);
#endif
    /* A session's buffer serves its communicators. */
    MPI_Session s;
    MPI_Group g;
    MPI_Comm sc;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
    MPI_Comm_create_from_group(g, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &sc);
    MPI_Group_free(&g);
    MPI_Error_class(MPI_Bsend(big, 10, MPI_CHAR, next, 1, sc), &class);
    EQ(class, MPI_ERR_BUFFER);
    EQ(MPI_Session_attach_buffer(s, room, 2 * N), MPI_SUCCESS);
    t_fill(big, N, t_rank, 3);
    EQ(MPI_Bsend(big, N, MPI_CHAR, next, 1, sc), MPI_SUCCESS);
    MPI_Recv(in, N, MPI_CHAR, last, 1, sc, MPI_STATUS_IGNORE);
    EQ(t_wrong(in, N, last, 3), -1);
    EQ(MPI_Session_flush_buffer(s), MPI_SUCCESS);
    EQ(MPI_Session_detach_buffer(s, &addr, &size), MPI_SUCCESS);
    OK(addr == room);
    /* Where the session has none, that of the process serves; where both have one, the session's. */
    EQ(MPI_Buffer_attach(room, 2 * N), MPI_SUCCESS);
    t_fill(big, N, t_rank, 4);
    EQ(MPI_Bsend(big, N, MPI_CHAR, next, 1, sc), MPI_SUCCESS);
    MPI_Recv(in, N, MPI_CHAR, last, 1, sc, MPI_STATUS_IGNORE);
    EQ(t_wrong(in, N, last, 4), -1);
    char little[10];
    EQ(MPI_Session_attach_buffer(s, little, sizeof little), MPI_SUCCESS);
    MPI_Error_class(MPI_Bsend(big, N, MPI_CHAR, next, 1, sc), &class);
    EQ(class, MPI_ERR_BUFFER);
    EQ(MPI_Session_detach_buffer(s, &addr, &size), MPI_SUCCESS);
    OK(addr == little);
    EQ(MPI_Buffer_detach(&addr, &size), MPI_SUCCESS);
    OK(addr == room);
    MPI_Comm_free(&sc);
    MPI_Session_finalize(&s);
    OK(s == MPI_SESSION_NULL);
    MPI_Comm_free(&c);
    free(big);
    free(in);
    free(room);
}

static void requests(void) {
    PART("requests");
    int a[3] = {-1, -1, -1}, out = t_rank, index, flag, n, indices[3];
    MPI_Request r[3];
    MPI_Status st[3];
    MPI_Irecv(&a[0], 1, MPI_INT, t_rank, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(&a[1], 1, MPI_INT, t_rank, 1, MPI_COMM_WORLD, &r[1]);
    r[2] = MPI_REQUEST_NULL;
    MPI_Request_get_status_any(3, r, &index, &flag, st);
    EQ(flag, 0);
    MPI_Request_get_status_all(3, r, &flag, st);
    EQ(flag, 0);
    MPI_Request_get_status_some(3, r, &n, indices, st);
    EQ(n, 0);
    MPI_Send(&out, 1, MPI_INT, t_rank, 1, MPI_COMM_WORLD);
    /* At last: progress is promised, not that the first look sees it. */
    for (int look = 0; look < 1000000 && !flag; look++) MPI_Request_get_status_any(3, r, &index, &flag, st);
    EQ(flag, 1);
    EQ(index, 1);
    EQ(st[0].MPI_TAG, 1);
    MPI_Request_get_status_some(3, r, &n, indices, st);
    EQ(n, 1);
    EQ(indices[0], 1);
    MPI_Request_get_status_all(3, r, &flag, MPI_STATUSES_IGNORE);
    EQ(flag, 0);
    MPI_Send(&out, 1, MPI_INT, t_rank, 0, MPI_COMM_WORLD);
    for (int look = 0; look < 1000000 && !flag; look++) MPI_Request_get_status_all(3, r, &flag, st);
    EQ(flag, 1);
    EQ(st[0].MPI_TAG, 0);
    EQ(st[1].MPI_TAG, 1);
    MPI_Request_get_status_some(3, r, &n, indices, MPI_STATUSES_IGNORE);
    EQ(n, 2);
    OK(r[0] != MPI_REQUEST_NULL && r[1] != MPI_REQUEST_NULL);
    MPI_Waitall(3, r, st);
    EQ(a[0], t_rank);
    EQ(st[1].MPI_TAG, 1);
    MPI_Request_get_status_any(3, r, &index, &flag, st);
    EQ(flag, 1);
    EQ(index, MPI_UNDEFINED);
    MPI_Request_get_status_some(3, r, &n, indices, st);
    EQ(n, MPI_UNDEFINED);
}

static void errors(void) {
    PART("errors");
    int class, code, *last, flag;
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "too blue");
    OK(MPI_Remove_error_class(class) != MPI_SUCCESS);
    OK(MPI_Remove_error_code(code) != MPI_SUCCESS);
    EQ(MPI_Remove_error_string(code), MPI_SUCCESS);
    EQ(MPI_Remove_error_code(code), MPI_SUCCESS);
    OK(MPI_Remove_error_code(code) != MPI_SUCCESS);
    EQ(MPI_Remove_error_class(class), MPI_SUCCESS);
    OK(MPI_Remove_error_class(MPI_ERR_RANK) != MPI_SUCCESS);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    OK(flag && *last < class);
}

static void hardware(void) {
    PART("hardware");
    MPI_Info info;
    MPI_Comm c;
    int size, flag, n, class;
    char value[100];
    MPI_Get_hw_resource_info(&info);
    MPI_Info_get_nkeys(info, &n);
    OK(n >= 2);
    MPI_Info_get(info, "mpi_shared_memory", 99, value, &flag);
    OK(flag && !strcmp(value, "true"));
    MPI_Info_free(&info);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &c);
    OK(c == MPI_COMM_NULL);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "hwloc://Nothing");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &c);
    OK(c == MPI_COMM_NULL);
    const char *all[] = {"mpi_shared_memory", "node", "hwloc://Package", "Package"};
    for (int i = 0; i < 4; i++) {
        MPI_Info_set(info, "mpi_hw_resource_type", all[i]);
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, t_size - t_rank, info, &c);
        MPI_Comm_size(c, &size);
        OK(size >= 1 && size <= t_size && (i > 1 || size == t_size));
        int rank;
        MPI_Comm_rank(c, &rank);
        if (size == t_size) EQ(rank, t_size - 1 - t_rank);
        MPI_Comm_free(&c);
    }
    /* As many communicators as there are CPUs in use, each with the ranks of one. */
    MPI_Info_set(info, "mpi_hw_resource_type", "hwloc://PU");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &c);
    MPI_Comm_size(c, &size);
    OK(size >= 1 && size <= t_size);
    MPI_Comm_free(&c);
    MPI_Info_free(&info);
    /* Divide until nothing divides any more. */
    MPI_Comm part, whole;
    MPI_Comm_dup(MPI_COMM_WORLD, &whole);
    for (n = 0; n < 10; n++) {
        int before, after;
        MPI_Info_create(&info);
        MPI_Comm_split_type(whole, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &part);
        if (part != MPI_COMM_NULL) {
            MPI_Info_get(info, "mpi_hw_resource_type", 99, value, &flag);
            EQ(flag, 1);
            MPI_Comm_size(whole, &before);
            MPI_Comm_size(part, &after);
            OK(after < before);
        }
        MPI_Info_free(&info);
        MPI_Comm_free(&whole);
        if (part == MPI_COMM_NULL) break;
        whole = part;
    }
    OK(n < 10);
#ifdef MPI_COMM_TYPE_RESOURCE_GUIDED
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_pset_name", "mpi://SELF");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &c);
    MPI_Comm_size(c, &size);
    EQ(size, 1);
    MPI_Comm_free(&c);
    MPI_Info_free(&info);
#endif
    MPI_Error_class(MPI_Comm_split_type(MPI_COMM_WORLD, 77, 0, MPI_INFO_NULL, &c), &class);
    EQ(class, MPI_ERR_ARG);
    MPI_Datatype pair;
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair);
    OK(pair == MPI_DOUBLE_INT);
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_FLOAT, &pair);
    OK(pair == MPI_DATATYPE_NULL);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    buffers();
    requests();
    errors();
    hardware();
    return t_end();
}
