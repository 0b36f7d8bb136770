/* Point-to-point: modes, sizes, wildcards, order, statuses, self, PROC_NULL, truncation. */
#include "t.h"
static const int sizes[] = {0, 1, 7, 64, 255, 256, 257, 1000, 4095, 4096, 4097, 8192, 16384, 65535, 65536, 65537, 262144, 1 << 20, (4 << 20) + 3};
#define SIZES ((int)(sizeof sizes / sizeof *sizes))
enum { STD, SYNC, BUFFERED, ISTD, ISYNC, IBUFFERED, MODES };
static unsigned char *out, *in, *attached;

static void send_mode(int mode, void *p, int n, int to, int tag) {
    MPI_Request q = MPI_REQUEST_NULL;
    switch (mode) {
    case STD: MPI_Send(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD); break;
    case SYNC: MPI_Ssend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD); break;
    case BUFFERED: MPI_Bsend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD); break;
    case ISTD: MPI_Isend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &q); break;
    case ISYNC: MPI_Issend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &q); break;
    case IBUFFERED: MPI_Ibsend(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &q); break;
    }
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Status st;
    int count, next = (t_rank + 1) % t_size, prev = (t_rank + t_size - 1) % t_size;
    size_t largest = sizes[SIZES - 1];
    out = malloc(largest);
    in = malloc(largest + 16);
    attached = malloc(2 * (largest + MPI_BSEND_OVERHEAD));
    MPI_Buffer_attach(attached, 2 * (int)(largest + MPI_BSEND_OVERHEAD));

    PART("modes and sizes, late and early receiver");
    for (int mode = 0; mode < MODES; mode++)
        for (int s = 0; s < SIZES; s++) {
            int n = sizes[s], tag = mode * 100 + s;
            t_fill(out, n, t_rank, tag);
            memset(in, 0xAA, n + 16);
            if (t_size > 1 && t_rank % 2 == 0 && t_rank + 1 < t_size) {
                send_mode(mode, out, n, t_rank + 1, tag);
                MPI_Recv(in, n + 16, MPI_BYTE, t_rank + 1, tag, MPI_COMM_WORLD, &st);
            } else if (t_rank % 2) {
                MPI_Recv(in, n + 16, MPI_BYTE, t_rank - 1, tag, MPI_COMM_WORLD, &st);
                send_mode(mode, out, n, t_rank - 1, tag);
            } else
                continue;
            MPI_Get_count(&st, MPI_BYTE, &count);
            EQ(count, n);
            EQ(st.MPI_TAG, tag);
            EQ(st.MPI_SOURCE, t_rank ^ 1);
            EQ(t_wrong(in, n, t_rank ^ 1, tag), -1);
            EQ(in[n], 0xAA);
        }
    say("modes done");

    PART("messages of one sender do not overtake, whatever their size");
    if (t_rank == 0)
        for (int k = 0; k < 200 * (t_size - 1); k++) {
            MPI_Recv(in, (int)largest, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &st);
            static int seen[1024];
            MPI_Get_count(&st, MPI_BYTE, &count);
            int i = seen[st.MPI_SOURCE]++;
            EQ(count, 4 + sizes[i * 5 % (SIZES - 3)]);
            int index;
            memcpy(&index, in, 4);
            EQ(index, i);
        }
    else
        for (int i = 0; i < 200; i++) {
            memcpy(out, &i, 4);
            MPI_Send(out, 4 + sizes[i * 5 % (SIZES - 3)], MPI_BYTE, 0, 5, MPI_COMM_WORLD);
        }
    MPI_Barrier(MPI_COMM_WORLD);

    PART("tags select; ANY_TAG takes in order");
    if (t_rank == 0 && t_size > 1) {
        for (int i = 0; i < 10; i++) MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
    } else if (t_rank == 1) {
        int v;
        for (int i = 9; i >= 5; i--) {
            MPI_Recv(&v, 1, MPI_INT, 0, i, MPI_COMM_WORLD, &st);
            EQ(v, i);
        }
        for (int i = 0; i < 5; i++) {
            MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
            EQ(v, i);
            EQ(st.MPI_TAG, i);
            EQ(st.MPI_SOURCE, 0);
        }
    }

    PART("ready send to a posted receive");
    MPI_Request q;
    int got = -1, mine = t_rank * 3;
    MPI_Irecv(&got, 1, MPI_INT, prev, 9, MPI_COMM_WORLD, &q);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rsend(&mine, 1, MPI_INT, next, 9, MPI_COMM_WORLD);
    MPI_Wait(&q, &st);
    EQ(got, prev * 3);

    PART("sendrecv, also with oneself");
    int values[3] = {t_rank, t_rank + 1, t_rank + 2}, theirs[3];
    MPI_Sendrecv(values, 3, MPI_INT, next, 1, theirs, 3, MPI_INT, prev, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    EQ(theirs[2], prev + 2);
    EQ(st.MPI_TAG, 1);
    MPI_Sendrecv(values, 3, MPI_INT, t_rank, 1, theirs, 3, MPI_INT, t_rank, 1, MPI_COMM_WORLD, &st);
    EQ(theirs[0], t_rank);
    unsigned char *big = malloc(1 << 20);
    t_fill(big, 1 << 20, t_rank, 4);
    MPI_Sendrecv_replace(big, 1 << 20, MPI_BYTE, next, 2, prev, 2, MPI_COMM_WORLD, &st);
    EQ(t_wrong(big, 1 << 20, prev, 4), -1);

    PART("to oneself, nonblocking, large");
    t_fill(big, 1 << 20, t_rank, 5);
    MPI_Isend(big, 1 << 20, MPI_BYTE, 0, 3, MPI_COMM_SELF, &q);
    MPI_Recv(in, 1 << 20, MPI_BYTE, MPI_ANY_SOURCE, 3, MPI_COMM_SELF, &st);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    EQ(t_wrong(in, 1 << 20, t_rank, 5), -1);

    PART("to oneself: of one tag in their order, whatever their size and mode");
    {
        enum { COUNT = 60 };
        static char out[COUNT][40000], in[40000];
        MPI_Request sent[COUNT];
        const int sizes[4] = {8, 40000, 300, 0};
        for (int turn = 0; turn < 3; turn++) {
            for (int i = 0; i < COUNT; i++) {
                memset(out[i], i + turn, sizeof out[i]);
                int bytes = sizes[i % 4];
                if (i % 5 == 4) MPI_Issend(out[i], bytes, MPI_CHAR, t_rank, 3, MPI_COMM_WORLD, &sent[i]);
                else if (i % 5 == 3 && bytes <= 300) MPI_Ibsend(out[i], bytes, MPI_CHAR, t_rank, 3, MPI_COMM_WORLD, &sent[i]);
                else MPI_Isend(out[i], bytes, MPI_CHAR, t_rank, 3, MPI_COMM_WORLD, &sent[i]);
            }
            for (int i = 0; i < COUNT; i++) {
                MPI_Status status;
                int bytes;
                memset(in, 99, sizeof in);
                MPI_Recv(in, sizeof in, MPI_CHAR, i % 2 ? MPI_ANY_SOURCE : t_rank, i % 3 ? 3 : MPI_ANY_TAG, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_CHAR, &bytes);
                if (!EQ(bytes, sizes[i % 4]) || !EQ(status.MPI_SOURCE, t_rank)) break;
                if (bytes && !(EQ(in[0], (char)(i + turn)) && EQ(in[bytes - 1], (char)(i + turn)))) break;
            }
            MPI_Waitall(COUNT, sent, MPI_STATUSES_IGNORE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    PART("PROC_NULL");
    MPI_Send(big, 10, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(big, 10, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &st);
    MPI_Get_count(&st, MPI_BYTE, &count);
    OK(st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG && count == 0);
    MPI_Irecv(big, 10, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, &st);
    STRICT(st.MPI_SOURCE == MPI_PROC_NULL);

    PART("truncation is an error of the receive, and the next message is whole");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int n = 100; n <= 1000000; n *= 100) {
        if (t_rank == 0 && t_size > 1) {
            t_fill(out, n, 0, 1);
            MPI_Send(out, n, MPI_BYTE, 1, 11, MPI_COMM_WORLD);
            MPI_Send(out, n, MPI_BYTE, 1, 12, MPI_COMM_WORLD);
        } else if (t_rank == 1) {
            int class, code = MPI_Recv(in, n / 2, MPI_BYTE, 0, 11, MPI_COMM_WORLD, &st);
            MPI_Error_class(code, &class);
            EQ(class, MPI_ERR_TRUNCATE);
            MPI_Recv(in, n, MPI_BYTE, 0, 12, MPI_COMM_WORLD, &st);
            EQ(t_wrong(in, n, 0, 1), -1);
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);

    PART("many outstanding, large and small, both directions");
    enum { MANY = 64 };
    MPI_Request many[2 * MANY];
    static unsigned char sent[MANY][20000], received[MANY][20000];
    for (int i = 0; i < MANY; i++) MPI_Irecv(received[i], 20000, MPI_BYTE, prev, i, MPI_COMM_WORLD, &many[i]);
    for (int i = MANY - 1; i >= 0; i--) {
        t_fill(sent[i], i * 300, t_rank, i);
        MPI_Isend(sent[i], i * 300, MPI_BYTE, next, i, MPI_COMM_WORLD, &many[MANY + i]);
    }
    MPI_Waitall(2 * MANY, many, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++) EQ(t_wrong(received[i], i * 300, prev, i), -1);

    PART("buffer detach waits and returns the buffer");
    MPI_Bsend(&mine, 1, MPI_INT, next, 21, MPI_COMM_WORLD);
    void *back = NULL;
    int back_size = 0;
    MPI_Recv(&got, 1, MPI_INT, prev, 21, MPI_COMM_WORLD, &st);
    MPI_Buffer_detach(&back, &back_size);
    OK(back == attached);
    EQ(back_size, 2 * (int)(largest + MPI_BSEND_OVERHEAD));
    say("all done, got %d", got);
    return t_end();
}
