/* Probe, Iprobe, Mprobe, Improbe, Mrecv, Imrecv, Cancel, Request_free, Get_elements on what was probed. */
#include "t.h"
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Status st;
    MPI_Message m;
    MPI_Request q;
    int n, flag, next = (t_rank + 1) % t_size, prev = (t_rank + t_size - 1) % t_size;
    for (int bytes = 4; bytes <= 4000000; bytes *= 100) {
        PART("probe tells the size before the receive");
        unsigned char *a = malloc(bytes), *b = malloc(bytes);
        t_fill(a, bytes, t_rank, 1);
        MPI_Isend(a, bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD, &q);
        MPI_Probe(prev, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
        MPI_Get_count(&st, MPI_BYTE, &n);
        EQ(n, bytes);
        EQ(st.MPI_TAG, 1);
        MPI_Recv(b, n, MPI_BYTE, st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD, &st);
        EQ(t_wrong(b, bytes, prev, 1), -1);
        MPI_Wait(&q, MPI_STATUS_IGNORE);

        PART("iprobe in a loop must come true");
        MPI_Isend(a, bytes, MPI_BYTE, next, 2, MPI_COMM_WORLD, &q);
        do MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, &st);
        while (!flag);
        EQ(st.MPI_SOURCE, prev);
        MPI_Iprobe(prev, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        EQ(flag, 0);
        MPI_Recv(b, bytes, MPI_BYTE, prev, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&q, MPI_STATUS_IGNORE);

        PART("mprobe takes the message out of matching");
        MPI_Isend(a, bytes, MPI_BYTE, next, 3, MPI_COMM_WORLD, &q);
        MPI_Mprobe(prev, 3, MPI_COMM_WORLD, &m, &st);
        OK(m != MPI_MESSAGE_NULL);
        MPI_Iprobe(prev, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        EQ(flag, 0);
        memset(b, 0, bytes);
        MPI_Mrecv(b, bytes, MPI_BYTE, &m, &st);
        OK(m == MPI_MESSAGE_NULL);
        EQ(t_wrong(b, bytes, prev, 1), -1);
        MPI_Wait(&q, MPI_STATUS_IGNORE);

        PART("improbe and imrecv, second message received before the first");
        MPI_Request two[2], r;
        t_fill(a, bytes, t_rank, 2);
        MPI_Isend(a, bytes, MPI_BYTE, next, 4, MPI_COMM_WORLD, &two[0]);
        int small = t_rank;
        MPI_Isend(&small, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &two[1]);
        do MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m, &st);
        while (!flag);
        MPI_Get_count(&st, MPI_BYTE, &n);
        EQ(n, bytes);
        int other = -1;
        MPI_Recv(&other, 1, MPI_INT, prev, 4, MPI_COMM_WORLD, &st);
        EQ(other, prev);
        MPI_Imrecv(b, bytes, MPI_BYTE, &m, &r);
        MPI_Wait(&r, &st);
        EQ(t_wrong(b, bytes, prev, 2), -1);
        MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD); /* in a long ring a neighbour could be a whole round ahead, with its next message */
        free(a);
        free(b);
    }
    PART("message from PROC_NULL");
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &m, &st);
    OK(m == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(NULL, 0, MPI_BYTE, &m, &st);
    EQ(st.MPI_SOURCE, MPI_PROC_NULL);
    MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &st);
    EQ(flag, 1);

    PART("cancel of a receive that nothing matches");
    int v = -5;
    MPI_Irecv(&v, 1, MPI_INT, prev, 999, MPI_COMM_WORLD, &q);
    MPI_Cancel(&q);
    MPI_Wait(&q, &st);
    MPI_Test_cancelled(&st, &flag);
    EQ(flag, 1);
    EQ(v, -5);
    MPI_Barrier(MPI_COMM_WORLD);
    /* The place is free again: the next receive with this tag gets the message. */
    MPI_Irecv(&v, 1, MPI_INT, prev, 999, MPI_COMM_WORLD, &q);
    MPI_Send(&t_rank, 1, MPI_INT, next, 999, MPI_COMM_WORLD);
    MPI_Wait(&q, &st);
    EQ(v, prev);
    MPI_Test_cancelled(&st, &flag);
    EQ(flag, 0);

    PART("a freed send request still delivers");
    static int kept;
    kept = t_rank + 50;
    MPI_Isend(&kept, 1, MPI_INT, next, 6, MPI_COMM_WORLD, &q);
    MPI_Request_free(&q);
    OK(q == MPI_REQUEST_NULL);
    MPI_Recv(&v, 1, MPI_INT, prev, 6, MPI_COMM_WORLD, &st);
    EQ(v, prev + 50);
    say("probed");
    MPI_Barrier(MPI_COMM_WORLD);
    return t_end();
}
