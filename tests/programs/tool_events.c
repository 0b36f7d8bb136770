/* MPI_T events: types, sources, registrations, callbacks with their data, dropped events; watermarks. Real events of the runtime. */
#include "t.h"

static int suspended, resumed, sent, received, unexpected, freed, last_tag;
static unsigned long long last_bytes;
static MPI_Count last_time;
static int index_of(const char *name) {
    int index = -1;
    EQ(MPI_T_event_get_index(name, &index), MPI_SUCCESS);
    return index;
}

static void count(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data) {
    (void)r;
    ++*(int *)data;
    EQ(safety, MPI_T_CB_REQUIRE_NONE);
    MPI_Count time = -1;
    int source = -1;
    EQ(MPI_T_event_get_timestamp(e, &time), MPI_SUCCESS);
    OK(time >= last_time);
    last_time = time;
    EQ(MPI_T_event_get_source(e, &source), MPI_SUCCESS);
    EQ(source, 0);
}

/* Messages: each element by itself and all at once. All of MPI may be called, and events of that do not come in between. */
static void message(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data) {
    struct { int peer; int gap; int tag; int gap2; unsigned long long bytes; } all;
    int tag = -1, peer = -1, depth = *(int *)data;
    unsigned long long bytes = 0;
    memset(&all, 0, sizeof all);
    EQ(MPI_T_event_read(e, 0, &peer), MPI_SUCCESS);
    EQ(MPI_T_event_read(e, 1, &tag), MPI_SUCCESS);
    EQ(MPI_T_event_read(e, 2, &bytes), MPI_SUCCESS);
    EQ(MPI_T_event_read(e, 3, &bytes), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_event_copy(e, &all), MPI_SUCCESS);
    OK(all.peer == peer && all.tag == tag && all.bytes == bytes);
    if (tag == 77) { /* a message of the program */
        last_tag = tag, last_bytes = bytes;
        int one = 1, other;
        MPI_Sendrecv(&one, 1, MPI_INT, 0, 78, &other, 1, MPI_INT, 0, 78, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        EQ(*(int *)data, depth);
        count(e, r, safety, data);
    }
}

static void gone(MPI_T_event_registration r, MPI_T_cb_safety safety, void *data) {
    (void)r, (void)safety;
    ++*(int *)data;
}

static long dropped;
static void drop(MPI_Count many, MPI_T_event_registration r, int source, MPI_T_cb_safety safety, void *data) {
    (void)r, (void)safety;
    EQ(source, 0);
    OK(data == &sent);
    dropped += many;
}

static MPI_T_event_registration listen(const char *name, MPI_T_event_cb_function *f, void *data) {
    MPI_T_event_registration r;
    EQ(MPI_T_event_handle_alloc(index_of(name), NULL, MPI_INFO_NULL, &r), MPI_SUCCESS);
    EQ(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, data, f), MPI_SUCCESS);
    return r;
}

static void described(void) {
    PART("types, sources, categories");
    int events, sources, n, verbosity, bind, elements, nlen, dlen, index, in_categories = 0;
    char name[100], desc[500];
    MPI_Datatype types[10];
    MPI_Aint at[10];
    MPI_T_enum e;
    MPI_Info info;
    EQ(MPI_T_event_get_num(&events), MPI_SUCCESS);
    OK(events >= 5);
    for (int i = 0; i < events; i++) {
        nlen = sizeof name, dlen = sizeof desc, elements = 10;
        EQ(MPI_T_event_get_info(i, name, &nlen, &verbosity, types, at, &elements, &e, &info, desc, &dlen, &bind), MPI_SUCCESS);
        EQ(strlen(name) + 1, nlen);
        OK(strlen(desc) > 10 && elements > 0 && bind == MPI_T_BIND_NO_OBJECT && info != MPI_INFO_NULL && e == MPI_T_ENUM_NULL);
        for (int k = 0; k < elements; k++) OK(at[k] == 8 * k && (types[k] == MPI_INT || types[k] == MPI_UNSIGNED_LONG_LONG));
        MPI_Info_free(&info);
        EQ(index_of(name), i);
    }
    elements = 1;
    EQ(MPI_T_event_get_info(events, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_event_get_index("no such event", &index), MPI_T_ERR_INVALID_NAME);
    MPI_T_category_get_num(&n);
    for (int i = 0; i < n; i++) {
        int list[20], some;
        EQ(MPI_T_category_get_num_events(i, &some), MPI_SUCCESS);
        EQ(MPI_T_category_get_events(i, some, list), MPI_SUCCESS);
        for (int k = 0; k < some; k++) OK(list[k] >= 0 && list[k] < events);
        in_categories += some;
    }
    EQ(in_categories, events);
    MPI_T_source_order order;
    MPI_Count ticks, most, from, to;
    EQ(MPI_T_source_get_num(&sources), MPI_SUCCESS);
    EQ(sources, 1);
    nlen = sizeof name, dlen = sizeof desc;
    EQ(MPI_T_source_get_info(0, name, &nlen, desc, &dlen, &order, &ticks, &most, &info), MPI_SUCCESS);
    OK(order == MPI_T_SOURCE_ORDERED && ticks == 1000000000 && most > ticks);
    MPI_Info_free(&info);
    EQ(MPI_T_source_get_timestamp(0, &from), MPI_SUCCESS);
    EQ(MPI_T_source_get_timestamp(0, &to), MPI_SUCCESS);
    OK(from > 0 && to >= from);
    EQ(MPI_T_source_get_timestamp(1, &to), MPI_T_ERR_INVALID_INDEX);
}

static void told(void) {
    PART("messages");
    MPI_T_event_registration s = listen("vmpi_message_sent", message, &sent), r = listen("vmpi_message_received", message, &received);
    MPI_T_event_registration u = listen("vmpi_message_unexpected", message, &unexpected);
    MPI_Info info;
    char text[300];
    MPI_Send(text, 300, MPI_CHAR, 0, 77, MPI_COMM_SELF);
    EQ(sent, 1);
    OK(last_tag == 77 && last_bytes == 300);
    MPI_Recv(text, 300, MPI_CHAR, 0, 77, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    OK(received == 1 && unexpected == 1);
    MPI_Request q;
    MPI_Irecv(text, 300, MPI_CHAR, 0, 77, MPI_COMM_SELF, &q);
    MPI_Send(text, 200, MPI_CHAR, 0, 77, MPI_COMM_SELF);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    OK(sent == 2 && received == 2 && unexpected == 1);
    EQ(last_bytes, 200);
    EQ(MPI_T_event_handle_get_info(s, &info), MPI_SUCCESS);
    EQ(MPI_T_event_handle_set_info(s, info), MPI_SUCCESS);
    MPI_Info_free(&info);
    EQ(MPI_T_event_callback_get_info(s, MPI_T_CB_REQUIRE_NONE, &info), MPI_SUCCESS);
    EQ(MPI_T_event_callback_set_info(s, MPI_T_CB_REQUIRE_NONE, info), MPI_SUCCESS);
    MPI_Info_free(&info);
    /* Without a callback nothing is told; a callback that requires more is good as well. */
    EQ(MPI_T_event_register_callback(s, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL), MPI_SUCCESS);
    MPI_Sendrecv(text, 9, MPI_CHAR, 0, 77, text + 100, 9, MPI_CHAR, 0, 77, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    OK(sent == 2 && received == 3);
    EQ(MPI_T_event_register_callback(s, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, &sent, message), MPI_SUCCESS);
    MPI_Sendrecv(text, 9, MPI_CHAR, 0, 77, text + 100, 9, MPI_CHAR, 0, 77, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    EQ(sent, 3);
    EQ(MPI_T_event_handle_free(r, &freed, gone), MPI_SUCCESS);
    EQ(MPI_T_event_handle_free(u, &freed, gone), MPI_SUCCESS);
    EQ(freed, 2);
    EQ(MPI_T_event_handle_free(u, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);

    PART("dropped");
    EQ(MPI_T_event_register_callback(s, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, &sent, count), MPI_SUCCESS);
    EQ(MPI_T_event_set_dropped_handler(s, drop), MPI_SUCCESS);
    enum { MANY = 3000 };
    static MPI_Request many[MANY + 1];
    for (int i = 0; i < MANY; i++) MPI_Send_init(NULL, 0, MPI_INT, 0, 5, MPI_COMM_SELF, &many[i]);
    sent = 0;
    MPI_Startall(MANY, many); /* one call */
    OK(sent > 0 && dropped > 0);
    EQ(sent + dropped, MANY);
    MPI_Waitall(MANY, many, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++) MPI_Recv(NULL, 0, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE), MPI_Request_free(&many[i]);
    EQ(MPI_T_event_handle_free(s, NULL, NULL), MPI_SUCCESS);

    PART("the scheduler");
    last_time = 0;
    MPI_T_event_registration w = listen("vmpi_suspended", count, &suspended), b = listen("vmpi_resumed", count, &resumed);
    if (t_size > 1) {
        /* The even ranks wait for the odd ones. */
        int other = t_rank ^ 1;
        for (int try = 0; other < t_size && try < 10; try++)
            if (t_rank % 2 == 0) {
                MPI_Send(text, 1, MPI_CHAR, other, 8, MPI_COMM_WORLD);
                MPI_Recv(text, 1, MPI_CHAR, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(text, 1, MPI_CHAR, other, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                double until = MPI_Wtime() + 0.02;
                while (MPI_Wtime() < until) {}
                MPI_Send(text, 1, MPI_CHAR, other, 9, MPI_COMM_WORLD);
            }
        if (other < t_size) OK(suspended > 0 && suspended == resumed);
    }
    MPI_T_event_handle_free(w, NULL, NULL), MPI_T_event_handle_free(b, NULL, NULL);
}

static void watermarks(void) {
    PART("watermarks");
    int index, count;
    unsigned long long most = 99;
    MPI_T_pvar_session s;
    MPI_T_pvar_handle h, k;
    MPI_Barrier(MPI_COMM_WORLD); /* nobody else sends anything until the next one */
    MPI_T_pvar_session_create(&s);
    EQ(MPI_T_pvar_get_index("vmpi_unexpected_messages_most", MPI_T_PVAR_CLASS_HIGHWATERMARK, &index), MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count);
    MPI_T_pvar_handle_alloc(s, index, NULL, &k, &count);
    EQ(MPI_T_pvar_start(s, h), MPI_SUCCESS);
    for (int i = 0; i < 4; i++) MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_SELF);
    int flag;
    MPI_Iprobe(0, 2, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_T_pvar_read(s, h, &most), EQ(most, 4);
    /* Another handle begins at the present level, and does not disturb this one. */
    EQ(MPI_T_pvar_start(s, k), MPI_SUCCESS);
    MPI_T_pvar_read(s, k, &most), EQ(most, 1);
    MPI_T_pvar_read(s, h, &most), EQ(most, 4);
    MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Iprobe(0, 2, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    MPI_T_pvar_read(s, k, &most), EQ(most, 2);
    EQ(MPI_T_pvar_stop(s, k), MPI_SUCCESS);
    MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Iprobe(0, 2, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    MPI_T_pvar_read(s, k, &most), EQ(most, 2);
    for (int i = 0; i < 3; i++) MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_T_pvar_readreset(s, h, &most), EQ(most, 4);
    MPI_T_pvar_read(s, h, &most), EQ(most, 0);
    MPI_T_pvar_session_free(&s);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    t_begin(&argc, &argv);
    described(), told(), watermarks();
    int code = t_end();
    MPI_T_finalize();
    return code;
}
