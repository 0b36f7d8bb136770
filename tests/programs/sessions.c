/* Sessions: without MPI_Init, around it, several at once, one after the other; process sets; communicators of groups. */
#include "t.h"
#include "newer.h"

static int sum_over(MPI_Comm c) {
    int one = 1, sum = -1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c);
    return sum;
}

static MPI_Comm world_of(MPI_Session s, const char *tag) {
    MPI_Group g;
    MPI_Comm c;
    MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
    MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c);
    MPI_Group_free(&g);
    return c;
}

static int called;
static void handler(MPI_Session *s, int *code, ...) {
    int class;
    MPI_Error_class(*code, &class);
    called = class;
}

/* Round the ring with buffered sends: MPI_Buffer_attach serves communicators of sessions, too (MPI 4.0 has no other buffer). */
static void buffered(MPI_Comm c) {
    PART("buffered");
    int rank, size, got = -1, bytes = 100 * sizeof(int) + MPI_BSEND_OVERHEAD;
    void *room = malloc(bytes), *again;
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    MPI_Buffer_attach(room, bytes);
    EQ(MPI_Bsend(&rank, 1, MPI_INT, (rank + 1) % size, 3, c), MPI_SUCCESS);
    MPI_Recv(&got, 1, MPI_INT, (rank + size - 1) % size, 3, c, MPI_STATUS_IGNORE);
    EQ(got, (rank + size - 1) % size);
    MPI_Buffer_detach(&again, &bytes);
    OK(again == room);
    free(room);
}

static void psets(MPI_Session s) {
    PART("psets");
    int n, len, flag, size, rank, result;
    char name[1100], value[100];
    MPI_Info info;
    MPI_Group g, h;
    MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n);
    OK(n >= 2);
    int world = 0, self = 0;
    for (int i = 0; i < n; i++) {
        len = 0;
        MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, NULL);
        int need = len;
        MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, name);
        EQ(len, need);
        EQ(strlen(name) + 1, need);
        world += !strcmp(name, "mpi://WORLD");
        self += !strcmp(name, "mpi://SELF");
        MPI_Session_get_pset_info(s, name, &info);
        MPI_Info_get(info, "mpi_size", 99, value, &flag);
        EQ(flag, 1);
        MPI_Info_free(&info);
        MPI_Group_from_session_pset(s, name, &g);
        MPI_Group_size(g, &size);
        EQ(size, atoi(value));
        MPI_Group_free(&g);
    }
    EQ(world, 1);
    EQ(self, 1);
    MPI_Group_from_session_pset(s, "mpi://Self", &g); /* in any case of letters */
    MPI_Group_size(g, &size);
    EQ(size, 1);
    MPI_Group_free(&g);
    MPI_Group_from_session_pset(s, "mpi://SELF", &g);
    MPI_Group_size(g, &size);
    MPI_Group_rank(g, &rank);
    EQ(size, 1);
    EQ(rank, 0);
    MPI_Group_from_session_pset(s, "mpi://WORLD", &h);
    MPI_Group_rank(h, &rank);
    MPI_Group_size(h, &size);
    OK(rank >= 0 && rank < size);
    int zero = 0, there;
    MPI_Group_translate_ranks(g, 1, &zero, h, &there);
    EQ(there, rank);
    MPI_Group_compare(g, h, &result);
    EQ(result, size == 1 ? MPI_IDENT : MPI_UNEQUAL);
    MPI_Group_free(&g);
    MPI_Group_free(&h);
    MPI_Session_get_info(s, &info);
    OK(info != MPI_INFO_NULL);
    MPI_Info_free(&info);
}

static void errors(void) {
    PART("errors");
    MPI_Session s;
    MPI_Errhandler e, f;
    MPI_Group g;
    MPI_Session_create_errhandler(handler, &e);
    MPI_Session_init(MPI_INFO_NULL, e, &s);
    MPI_Session_get_errhandler(s, &f);
    OK(f == e);
    MPI_Errhandler_free(&f);
    MPI_Errhandler_free(&e);
    MPI_Session_call_errhandler(s, MPI_ERR_OTHER);
    EQ(called, MPI_ERR_OTHER);
    called = 0;
    MPI_Info info;
    STRICT(MPI_Group_from_session_pset(s, "mpi://NOWHERE", &g) != MPI_SUCCESS);
    OK(MPI_Session_get_pset_info(s, "mpi://NOWHERE", &info) != MPI_SUCCESS);
    OK(called != 0);
    STRICT(called == MPI_ERR_ARG);
    MPI_Session_set_errhandler(s, MPI_ERRORS_RETURN);
    MPI_Session_get_errhandler(s, &f);
    OK(f == MPI_ERRORS_RETURN);
    MPI_Session_finalize(&s);
    OK(s == MPI_SESSION_NULL);
}

/* Two sessions' communicators, used crosswise. */
static void two(void) {
    PART("two");
    MPI_Session a, b;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &a);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &b);
    OK(a != b);
    MPI_Comm ca = world_of(a, "two/a"), cb = world_of(b, "two/b"), ca2 = world_of(a, "two/a");
    int size, rank, result, got = -1;
    MPI_Comm_size(ca, &size);
    MPI_Comm_rank(ca, &rank);
    MPI_Comm_compare(ca, cb, &result);
    EQ(result, MPI_CONGRUENT);
    EQ(sum_over(ca), size);
    EQ(sum_over(cb), size);
    int next = (rank + 1) % size, last = (rank + size - 1) % size, va = rank, vb = 1000 + rank;
    MPI_Request r[2];
    MPI_Isend(&va, 1, MPI_INT, next, 1, ca, &r[0]);
    MPI_Isend(&vb, 1, MPI_INT, next, 1, cb, &r[1]);
    MPI_Recv(&got, 1, MPI_INT, last, 1, cb, MPI_STATUS_IGNORE);
    EQ(got, 1000 + last);
    MPI_Recv(&got, 1, MPI_INT, last, 1, ca, MPI_STATUS_IGNORE);
    EQ(got, last);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    /* Derived communicators belong to the session. */
    MPI_Comm half;
    MPI_Comm_split(ca2, rank % 2, 0, &half);
    EQ(sum_over(half), rank % 2 ? size / 2 : (size + 1) / 2);
    MPI_Comm_free(&half);
    MPI_Comm_free(&ca);
    MPI_Comm_free(&ca2);
    MPI_Session_finalize(&a);
    EQ(sum_over(cb), size);
    MPI_Comm_free(&cb);
    MPI_Session_finalize(&b);
}

static void subgroups(MPI_Session s) {
    PART("subgroups");
    MPI_Group world, odd, even, mine, other;
    MPI_Comm c, inter, merged;
    int size, rank, n = 0, m = 0, result;
    MPI_Group_from_session_pset(s, "mpi://WORLD", &world);
    MPI_Group_size(world, &size);
    MPI_Group_rank(world, &rank);
    int o[size], e[size];
    for (int r = size - 1; r >= 0; r--) r % 2 ? (o[n++] = r) : (e[m++] = r);
    MPI_Group_incl(world, n, o, &odd);
    MPI_Group_incl(world, m, e, &even);
    mine = rank % 2 ? odd : even;
    other = rank % 2 ? even : odd;
    MPI_Comm_create_from_group(mine, rank % 2 ? "odd" : "even", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c);
    MPI_Group g;
    MPI_Comm_group(c, &g);
    MPI_Group_compare(g, mine, &result);
    EQ(result, MPI_IDENT);
    MPI_Group_free(&g);
    EQ(sum_over(c), rank % 2 ? n : m);
    MPI_Comm_free(&c);
    MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "empty", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c);
    OK(c == MPI_COMM_NULL);
    if (size > 1) {
        int remote, local;
        MPI_Intercomm_create_from_groups(mine, 0, other, 0, "inter", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter);
        MPI_Comm_remote_size(inter, &remote);
        MPI_Comm_size(inter, &local);
        EQ(remote, rank % 2 ? m : n);
        EQ(local, rank % 2 ? n : m);
        MPI_Intercomm_merge(inter, rank % 2, &merged);
        EQ(sum_over(merged), size);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&inter);
    }
    if (n) MPI_Group_free(&odd);
    MPI_Group_free(&even);
    MPI_Group_free(&world);
}

int main(int argc, char **argv) {
    int flag, size;
    MPI_Session s, keep;
    t_trace = getenv("VMPI_TEST_TRACE") != NULL;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    /* No MPI_Init at all; then MPI is down again; then once more. */
    for (int i = 0; i < 3; i++) {
        MPI_Session_init(i == 1 ? info : MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
        MPI_Initialized(&flag);
        EQ(flag, 0);
        psets(s);
        MPI_Comm c = world_of(s, "first");
        MPI_Comm_size(c, &size);
        EQ(sum_over(c), size);
        MPI_Barrier(c);
        buffered(c);
        MPI_Comm_free(&c);
        MPI_Session_finalize(&s);
        OK(s == MPI_SESSION_NULL);
        MPI_Finalized(&flag);
        EQ(flag, 0);
    }
    MPI_Info_free(&info);
    errors();
    two();
    /* A session from before MPI_Init to after MPI_Finalize. */
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &keep);
    MPI_Comm kept = world_of(keep, "kept");
    t_begin(&argc, &argv);
    EQ(sum_over(MPI_COMM_WORLD), t_size);
    EQ(sum_over(kept), t_size);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    subgroups(s);
    MPI_Session_finalize(&s);
    two();
    int code = t_end();
    MPI_Finalized(&flag);
    if (!flag) code = 3;
    if (sum_over(kept) != t_size) code = 4;
    MPI_Comm_free(&kept);
    MPI_Session_finalize(&keep);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    MPI_Comm c = world_of(s, "last");
    if (sum_over(c) != t_size) code = 5;
    MPI_Comm_free(&c);
    MPI_Session_finalize(&s);
    return code;
}
