/* The wait and test families, null and inactive requests, persistent requests, Request_get_status, generalized requests. */
#include "t.h"
enum { N = 16 };
static MPI_Comm w;
static int grequest_freed, grequest_queried;
static int g_query(void *extra, MPI_Status *st) {
    grequest_queried++;
    MPI_Status_set_elements(st, MPI_INT, *(int *)extra);
    MPI_Status_set_cancelled(st, 0);
    st->MPI_SOURCE = 3;
    st->MPI_TAG = 44;
    return MPI_SUCCESS;
}
static int g_free(void *extra) {
    (void)extra;
    grequest_freed++;
    return MPI_SUCCESS;
}
static int g_cancel(void *extra, int complete) {
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    w = MPI_COMM_WORLD;
    MPI_Status st, sts[N];
    MPI_Request q[N], s[N];
    int in[N], out[N], index, flag, count, indices[N], next = (t_rank + 1) % t_size, prev = (t_rank + t_size - 1) % t_size;
    for (int i = 0; i < N; i++) out[i] = t_rank * 1000 + i;
#define POST(from) for (int i = 0; i < N; i++) in[i] = -1, MPI_Irecv(&in[i], 1, MPI_INT, prev, i, w, &q[i])
#define SEND() for (int i = N - 1; i >= 0; i--) MPI_Isend(&out[i], 1, MPI_INT, next, i, w, &s[i])
#define SENT() MPI_Waitall(N, s, MPI_STATUSES_IGNORE)

    PART("waitany"); POST(); SEND();
    long sum = 0;
    for (int i = 0; i < N; i++) {
        MPI_Waitany(N, q, &index, &st);
        OK(index >= 0 && index < N && in[index] == prev * 1000 + index && st.MPI_TAG == index && q[index] == MPI_REQUEST_NULL);
        sum += index;
    }
    EQ(sum, N * (N - 1) / 2);
    MPI_Waitany(N, q, &index, &st);
    EQ(index, MPI_UNDEFINED);
    SENT();

    PART("testany"); POST(); SEND();
    for (int done = 0; done < N;) {
        MPI_Testany(N, q, &index, &flag, &st);
        if (flag) { OK(in[index] == prev * 1000 + index); done++; }
    }
    MPI_Testany(N, q, &index, &flag, &st);
    OK(flag && index == MPI_UNDEFINED);
    SENT();

    PART("waitsome"); POST(); SEND();
    for (int done = 0; done < N; done += count) {
        MPI_Waitsome(N, q, &count, indices, sts);
        OK(count >= 1);
        for (int k = 0; k < count; k++) OK(in[indices[k]] == prev * 1000 + indices[k] && sts[k].MPI_TAG == indices[k]);
    }
    MPI_Waitsome(N, q, &count, indices, sts);
    EQ(count, MPI_UNDEFINED);
    SENT();

    PART("testsome"); POST(); SEND();
    for (int done = 0; done < N; done += count) {
        MPI_Testsome(N, q, &count, indices, sts);
        for (int k = 0; k < count; k++) OK(in[indices[k]] == prev * 1000 + indices[k]);
    }
    SENT();

    PART("testall, test"); POST(); SEND();
    do MPI_Testall(N, q, &flag, sts);
    while (!flag);
    for (int i = 0; i < N; i++) OK(in[i] == prev * 1000 + i && sts[i].MPI_TAG == i && sts[i].MPI_SOURCE == prev);
    SENT();
    POST(); SEND();
    for (int i = 0; i < N; i++) {
        do {
            MPI_Request_get_status(q[i], &flag, &st);
            if (flag) OK(q[i] != MPI_REQUEST_NULL && st.MPI_TAG == i);
        } while (!flag);
        MPI_Test(&q[i], &flag, &st);
        OK(flag && q[i] == MPI_REQUEST_NULL && st.MPI_TAG == i);
    }
    SENT();

    PART("null requests have an empty status");
    MPI_Request null = MPI_REQUEST_NULL;
    memset(&st, 0x55, sizeof st);
    MPI_Wait(&null, &st);
    MPI_Get_count(&st, MPI_INT, &count);
    OK(st.MPI_SOURCE == MPI_ANY_SOURCE && st.MPI_TAG == MPI_ANY_TAG && count == 0);
    MPI_Test(&null, &flag, MPI_STATUS_IGNORE);
    EQ(flag, 1);
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
    EQ(flag, 1);

    PART("waitany prefers what is complete while another can never complete");
    MPI_Request two[2];
    int never = 0, now = 0;
    MPI_Irecv(&never, 1, MPI_INT, prev, 500, w, &two[0]);
    MPI_Irecv(&now, 1, MPI_INT, prev, 501, w, &two[1]);
    MPI_Send(&t_rank, 1, MPI_INT, next, 501, w);
    MPI_Waitany(2, two, &index, &st);
    OK(index == 1 && now == prev);
    MPI_Barrier(w);
    MPI_Send(&t_rank, 1, MPI_INT, next, 500, w);
    MPI_Wait(&two[0], &st);

    PART("persistent");
    MPI_Request p[2 * N];
    for (int i = 0; i < N; i++) {
        MPI_Recv_init(&in[i], 1, MPI_INT, prev, i, w, &p[i]);
        if (i % 3 == 0) MPI_Send_init(&out[i], 1, MPI_INT, next, i, w, &p[N + i]);
        else if (i % 3 == 1) MPI_Ssend_init(&out[i], 1, MPI_INT, next, i, w, &p[N + i]);
        else MPI_Send_init(&out[i], 1, MPI_INT, next, i, w, &p[N + i]);
    }
    MPI_Wait(&p[0], &st); /* inactive: returns at once with an empty status */
    OK(st.MPI_SOURCE == MPI_ANY_SOURCE && p[0] != MPI_REQUEST_NULL);
    MPI_Waitany(2 * N, p, &index, &st);
    EQ(index, MPI_UNDEFINED);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++) out[i] = t_rank * 1000 + i + round, in[i] = -1;
        if (round % 2) MPI_Startall(2 * N, p);
        else for (int i = 2 * N - 1; i >= 0; i--) MPI_Start(&p[i]);
        if (round % 3 == 0) MPI_Waitall(2 * N, p, MPI_STATUSES_IGNORE);
        else for (int done = 0; done < 2 * N; done++) {
            MPI_Waitany(2 * N, p, &index, &st);
            OK(index != MPI_UNDEFINED && p[index] != MPI_REQUEST_NULL);
        }
        for (int i = 0; i < N; i++) EQ(in[i], prev * 1000 + i + round);
    }
    for (int i = 0; i < 2 * N; i++) MPI_Request_free(&p[i]);
    MPI_Bsend_init(&out[0], 1, MPI_INT, MPI_PROC_NULL, 0, w, &p[0]);
    MPI_Start(&p[0]);
    MPI_Wait(&p[0], MPI_STATUS_IGNORE);
    MPI_Request_free(&p[0]);

    PART("generalized requests");
    int elements = 12;
    MPI_Request g;
    MPI_Grequest_start(g_query, g_free, g_cancel, &elements, &g);
    MPI_Test(&g, &flag, &st);
    EQ(flag, 0);
    MPI_Grequest_complete(g);
    MPI_Wait(&g, &st);
    MPI_Get_count(&st, MPI_INT, &count);
    OK(count == 12 && st.MPI_SOURCE == 3 && st.MPI_TAG == 44 && grequest_freed == 1 && grequest_queried >= 1);
    say("waited, sum %ld", sum);
    return t_end();
}
