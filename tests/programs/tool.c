/* The tool information interface: variables, handles, sessions, enumerations, categories, errors. The names and numbers of
 * variables are each library's own; that the calls agree with each other is checked for all of them. */
#include "t.h"

static char name[1000], desc[2000];

/* Codes of the tool interface are error codes as others: a tool shows them as it shows those. */
static void codes(void) {
    PART("codes");
    static const struct {
        int code;
        const char *name;
    } all[] = {
#define CODE(name) {MPI_T_ERR_##name, "MPI_T_ERR_" #name ":"}
        CODE(MEMORY), CODE(NOT_INITIALIZED), CODE(CANNOT_INIT), CODE(INVALID_INDEX), CODE(INVALID_ITEM), CODE(INVALID_HANDLE),
        CODE(OUT_OF_HANDLES), CODE(OUT_OF_SESSIONS), CODE(INVALID_SESSION), CODE(CVAR_SET_NOT_NOW), CODE(CVAR_SET_NEVER),
        CODE(PVAR_NO_STARTSTOP), CODE(PVAR_NO_WRITE), CODE(PVAR_NO_ATOMIC), CODE(INVALID_NAME), CODE(INVALID),
#ifdef MPI_T_ERR_NOT_SUPPORTED
        CODE(NOT_SUPPORTED),
#endif
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int class = -1, length = -1;
        EQ(MPI_Error_class(all[i].code, &class), MPI_SUCCESS);
        STRICT(class == all[i].code);
        EQ(MPI_Error_string(all[i].code, text, &length), MPI_SUCCESS);
        EQ(strlen(text), length);
        STRICT(!strncmp(text, all[i].name, strlen(all[i].name)) && length > (int)strlen(all[i].name) + 5);
    }
}

static void cvars(void) {
    PART("cvars");
    int n, index, verbosity, bind, scope, nlen, dlen, count, class;
    MPI_Datatype type;
    MPI_T_enum e;
    MPI_T_cvar_handle h;
    EQ(MPI_T_cvar_get_num(&n), MPI_SUCCESS);
    OK(n > 0);
    for (int i = 0; i < n; i++) {
        nlen = sizeof name, dlen = sizeof desc;
        if (MPI_T_cvar_get_info(i, name, &nlen, &verbosity, &type, &e, desc, &dlen, &bind, &scope) != MPI_SUCCESS) continue;
        EQ(strlen(name) + 1, nlen);
        STRICT(dlen > 5 && desc[dlen - 2] != 0);
        OK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
        if (!getenv("VMPI_JOBID")) continue;
        EQ(bind, MPI_T_BIND_NO_OBJECT);
        OK(scope == MPI_T_SCOPE_CONSTANT || scope == MPI_T_SCOPE_LOCAL);
        EQ(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS);
        EQ(index, i);
        EQ(MPI_T_cvar_handle_alloc(i, NULL, &h, &count), MPI_SUCCESS);
        union { int i; unsigned long long u; char c[100]; } value = {0}, other;
        EQ(MPI_T_cvar_read(h, &value), MPI_SUCCESS);
        if (type == MPI_INT && e != MPI_T_ENUM_NULL) {
            int items, known = 0, number;
            char ename[100];
            int elen = 100;
            MPI_T_enum_get_info(e, &items, ename, &elen);
            for (int k = 0; k < items; k++) {
                elen = 100;
                EQ(MPI_T_enum_get_item(e, k, &number, ename, &elen), MPI_SUCCESS);
                known += number == value.i;
            }
            EQ(known, 1);
            EQ(MPI_T_enum_get_item(e, items, &number, ename, &elen), MPI_T_ERR_INVALID_INDEX);
        }
        if (scope == MPI_T_SCOPE_CONSTANT) {
            EQ(MPI_T_cvar_write(h, &value), MPI_T_ERR_CVAR_SET_NEVER);
        } else {
            OK(type == MPI_UNSIGNED_LONG_LONG);
            other.u = value.u / 2 + 1;
            EQ(MPI_T_cvar_write(h, &other), MPI_SUCCESS);
            MPI_T_cvar_read(h, &other);
            OK(other.u >= value.u / 2 && other.u <= value.u / 2 + 1);
            other.u = ~0ull;
            EQ(MPI_T_cvar_write(h, &other), MPI_T_ERR_INVALID);
            EQ(MPI_T_cvar_write(h, &value), MPI_SUCCESS);
        }
        EQ(MPI_T_cvar_handle_free(&h), MPI_SUCCESS);
        OK(h == MPI_T_CVAR_HANDLE_NULL);
        EQ(MPI_T_cvar_read(h, &value), MPI_T_ERR_INVALID_HANDLE);
    }
    nlen = 4;
    if (getenv("VMPI_JOBID")) {
        MPI_T_cvar_get_info(0, name, &nlen, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
        EQ(strlen(name), 3);
        OK(nlen > 4);
    }
    EQ(MPI_T_cvar_get_info(n, name, &nlen, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_cvar_get_index("no such variable", &index), MPI_T_ERR_INVALID_NAME);
}

/* The eager limits are in force: with both 0, a message to a receiver of the same core that does nothing cannot complete; with either it does. */
static void eager(void) {
    PART("eager");
    static const char *const names[2] = {"vmpi_eager_limit_bytes", "vmpi_near_eager_limit_bytes"};
    int index, count, flag;
    MPI_T_cvar_handle h[2];
    unsigned long long none = 0, before[2];
    char message[1000] = {0};
    MPI_Request r;
    for (int i = 0; i < 2; i++) {
        MPI_T_cvar_get_index(names[i], &index);
        MPI_T_cvar_handle_alloc(index, NULL, &h[i], &count);
        MPI_T_cvar_read(h[i], &before[i]);
        OK(before[i] >= sizeof message);
    }
    for (int with = 0; with < 4; with++) {
        for (int i = 0; i < 2; i++) MPI_T_cvar_write(h[i], with >> i & 1 ? &before[i] : &none);
        MPI_Isend(message, sizeof message, MPI_CHAR, t_rank, 1, MPI_COMM_WORLD, &r);
        MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        EQ(flag, with != 0);
        MPI_Recv(message, sizeof message, MPI_CHAR, t_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!flag) MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 2; i++) {
        MPI_T_cvar_write(h[i], &before[i]);
        MPI_T_cvar_handle_free(&h[i]);
    }
}

static void pvars(void) {
    PART("pvars");
    int n, nlen, dlen, verbosity, class, bind, readonly, continuous, atomic, count, index;
    MPI_Datatype type;
    MPI_T_enum e;
    MPI_T_pvar_session s, t;
    MPI_T_pvar_handle h, k;
    EQ(MPI_T_pvar_get_num(&n), MPI_SUCCESS);
    MPI_T_pvar_session_create(&s);
    for (int i = 0; i < n; i++) {
        nlen = sizeof name, dlen = sizeof desc;
        if (MPI_T_pvar_get_info(i, name, &nlen, &verbosity, &class, &type, &e, desc, &dlen, &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS) continue;
        EQ(strlen(name) + 1, nlen);
        OK(class >= MPI_T_PVAR_CLASS_STATE && class <= MPI_T_PVAR_CLASS_GENERIC);
        if (!getenv("VMPI_JOBID")) continue;
        EQ(MPI_T_pvar_get_index(name, class, &index), MPI_SUCCESS);
        EQ(index, i);
        MPI_Comm own = MPI_COMM_SELF, world = MPI_COMM_WORLD;
        if (bind == MPI_T_BIND_MPI_COMM) {
            int members;
            MPI_Comm_size(world, &members);
            EQ(MPI_T_pvar_handle_alloc(s, i, &world, &h, &count), MPI_SUCCESS);
            EQ(count, members);
            EQ(MPI_T_pvar_handle_free(s, &h), MPI_SUCCESS);
        }
        EQ(MPI_T_pvar_handle_alloc(s, i, bind == MPI_T_BIND_MPI_COMM ? &own : NULL, &h, &count), MPI_SUCCESS);
        EQ(count, 1);
        EQ(MPI_T_pvar_start(s, h), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS);
        EQ(MPI_T_pvar_reset(s, h), readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS);
        char value[16];
        EQ(MPI_T_pvar_read(s, h, value), MPI_SUCCESS);
        EQ(MPI_T_pvar_handle_free(s, &h), MPI_SUCCESS);
        OK(h == MPI_T_PVAR_HANDLE_NULL);
    }
    EQ(MPI_T_pvar_get_index("no such variable", MPI_T_PVAR_CLASS_LEVEL, &index), MPI_T_ERR_INVALID_NAME);
    if (getenv("VMPI_JOBID")) {
        /* What is counted is what happens between start and stop, for each handle by itself. */
        unsigned long long sent = 99, bytes = 99, twice = 99;
        char message[300];
        MPI_T_pvar_get_index("vmpi_messages_sent", MPI_T_PVAR_CLASS_COUNTER, &index);
        MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count);
        MPI_T_pvar_get_index("vmpi_bytes_sent", MPI_T_PVAR_CLASS_AGGREGATE, &index);
        MPI_T_pvar_handle_alloc(s, index, NULL, &k, &count);
        MPI_T_pvar_start(s, MPI_T_PVAR_ALL_HANDLES);
        for (int i = 0; i < 5; i++)
            MPI_Sendrecv_replace(message, 300, MPI_CHAR, t_rank, 1, t_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_T_pvar_read(s, h, &sent);
        EQ(sent, 5);
        MPI_T_pvar_stop(s, h);
        MPI_Sendrecv_replace(message, 300, MPI_CHAR, t_rank, 1, t_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_T_pvar_read(s, h, &sent);
        EQ(sent, 5);
        MPI_T_pvar_readreset(s, k, &bytes);
        EQ(bytes, 1800);
        MPI_T_pvar_read(s, k, &twice);
        EQ(twice, 0);
        /* Unexpected messages: of one rank after the other, while nobody sends it any. Those that are through go on when all are, because what
         * follows may be made of messages to ranks that are not (over several nodes a barrier is). */
        unsigned long long level = 99;
        if (t_rank > 0) MPI_Recv(message, 1, MPI_CHAR, t_rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_T_pvar_handle u;
        MPI_T_pvar_get_index("vmpi_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, &index);
        MPI_T_pvar_handle_alloc(s, index, NULL, &u, &count);
        int flag;
        for (int i = 0; i < 3; i++) MPI_Send(message, 1, MPI_CHAR, t_rank, 5, MPI_COMM_WORLD);
        MPI_Iprobe(t_rank, 6, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_T_pvar_read(s, u, &level);
        EQ(level, 3);
        for (int i = 0; i < 3; i++) MPI_Recv(message, 1, MPI_CHAR, t_rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_T_pvar_read(s, u, &level);
        EQ(level, 0);
        if (t_rank < t_size - 1) {
            MPI_Send(message, 1, MPI_CHAR, t_rank + 1, 7, MPI_COMM_WORLD);
            MPI_Recv(message, 1, MPI_CHAR, t_rank + 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (t_rank > 0) MPI_Send(message, 1, MPI_CHAR, t_rank - 1, 8, MPI_COMM_WORLD);
        /* Time goes on while this rank computes. */
        double running = -1;
        MPI_T_pvar_handle r;
        MPI_T_pvar_get_index("vmpi_time_running", MPI_T_PVAR_CLASS_TIMER, &index);
        MPI_T_pvar_handle_alloc(s, index, NULL, &r, &count);
        MPI_T_pvar_start(s, r);
        double from = MPI_Wtime();
        while (MPI_Wtime() < from + 0.01) {}
        MPI_T_pvar_read(s, r, &running);
        OK(running > 0 && running < 100);
        MPI_T_pvar_session_create(&t);
        EQ(MPI_T_pvar_read(t, r, &running), MPI_T_ERR_INVALID_HANDLE);
        EQ(MPI_T_pvar_session_free(&t), MPI_SUCCESS);
        OK(t == MPI_T_PVAR_SESSION_NULL);
        EQ(MPI_T_pvar_session_free(&t), MPI_T_ERR_INVALID_SESSION);
    }
    MPI_T_pvar_session_free(&s);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void categories(void) {
    PART("categories");
    int n, nlen, dlen, cvars, pvars, subs, changed, index;
    MPI_T_category_get_num(&n);
    OK(n > 0);
    for (int i = 0; i < n; i++) {
        nlen = sizeof name, dlen = sizeof desc;
        EQ(MPI_T_category_get_info(i, name, &nlen, desc, &dlen, &cvars, &pvars, &subs), MPI_SUCCESS);
        EQ(strlen(name) + 1, nlen);
        int *list = malloc((cvars + pvars + subs + 1) * sizeof(int)), count;
        EQ(MPI_T_category_get_cvars(i, cvars, list), MPI_SUCCESS);
        MPI_T_cvar_get_num(&count);
        for (int k = 0; k < cvars; k++) OK(list[k] >= 0 && list[k] < count);
        EQ(MPI_T_category_get_categories(i, subs, list), MPI_SUCCESS);
        for (int k = 0; k < subs; k++) OK(list[k] >= 0 && list[k] < n);
        free(list);
        if (getenv("VMPI_JOBID")) {
            EQ(MPI_T_category_get_index(name, &index), MPI_SUCCESS);
            EQ(index, i);
        }
    }
    EQ(MPI_T_category_changed(&changed), MPI_SUCCESS);
    OK(MPI_T_category_get_info(n, name, &nlen, desc, &dlen, &cvars, &pvars, &subs) != MPI_SUCCESS);
}

int main(int argc, char **argv) {
    int provided, n;
    EQ(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
    EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    EQ(MPI_T_cvar_get_num(&n), MPI_SUCCESS);
    t_begin(&argc, &argv);
    EQ(MPI_T_finalize(), MPI_SUCCESS);
    codes();
    cvars();
    if (getenv("VMPI_JOBID")) eager();
    pvars();
    categories();
    int code = t_end();
    if (MPI_T_finalize() != MPI_SUCCESS) code = 3;
    if (MPI_T_cvar_get_num(&n) != MPI_T_ERR_NOT_INITIALIZED) code = 4;
    return code;
}
