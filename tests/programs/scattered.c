/* Messages whose bytes lie scattered where they come from, where they go, or both: blocks of 8 bytes, of 1,000, of every length, of 20,000, and one block, each with each,
 * by every kind of send and receive. Each byte is in its place, and what lies between them is as it was. */
#include "t.h"
enum { ONE, EIGHTS, THOUSANDS, EVERY, LARGE, LAYOUTS, GAP = 0xee };

/* The blocks of a layout of `total` bytes (a multiple of 20,000), in order; returns what it spans. */
static long walk(int layout, long total, long *at, int *len, int *n) {
    long done = 0, place = 0;
    for (*n = 0; done < total; ++*n) {
        int bytes = layout == ONE ? total : layout == EIGHTS ? 8 : layout == THOUSANDS ? 1000 : layout == LARGE ? 20000 : 1 + *n * 37 % 4000;
        int gap = layout == EIGHTS ? 16 : layout == THOUSANDS ? 500 : layout == LARGE ? 64 : 1 + *n % 50;
        if (bytes > total - done) bytes = total - done;
        at[*n] = place, len[*n] = bytes;
        place += bytes + gap, done += bytes;
    }
    return place;
}

static long *places;
static int *lengths;

static MPI_Datatype type_of(int layout, long total, long *span) {
    MPI_Datatype t;
    int n;
    *span = walk(layout, total, places, lengths, &n);
    if (layout == ONE)
        MPI_Type_contiguous(total, MPI_BYTE, &t);
    else if (layout == EVERY) {
        MPI_Aint *at = malloc(n * sizeof *at);
        for (int i = 0; i < n; i++) at[i] = places[i];
        MPI_Type_create_hindexed(n, lengths, at, MPI_BYTE, &t);
        free(at);
    } else if (layout == EIGHTS)
        MPI_Type_vector(n, 1, 3, MPI_DOUBLE, &t);
    else
        MPI_Type_create_hvector(n, lengths[0], places[1] - places[0], MPI_BYTE, &t);
    MPI_Type_commit(&t);
    return t;
}

static unsigned char *fresh(long span) { return memset(malloc(span), GAP, span); }

static void fill(unsigned char *memory, int layout, long total, int rank, int message) {
    int n;
    size_t k = 0;
    walk(layout, total, places, lengths, &n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < lengths[i]; j++) memory[places[i] + j] = t_byte(rank, message, k++);
}

/* The first `sent` bytes are the message; the rest is as it was. */
static void check(unsigned char *memory, int layout, long total, long sent, long span, int rank, int message) {
    int n;
    long k = 0, wrong = 0;
    walk(layout, total, places, lengths, &n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < lengths[i] && k < sent; j++, k++) {
            wrong += memory[places[i] + j] != t_byte(rank, message, k);
            memory[places[i] + j] = GAP;
        }
    EQ(wrong, 0);
    wrong = 0;
    for (long i = 0; i < span; i++) wrong += memory[i] != GAP;
    EQ(wrong, 0);
}

enum { SEND, SSEND, ISEND, SENDRECV, BSEND, PERSISTENT, SENDS };
enum { RECV, IRECV, MRECV, ANY, LONGER, RECEIVES };

/* To the next rank, from the one before; all of them alone: to itself. */
static void round_of(MPI_Comm w, int send, int receive, int out, int in, long total, int message) {
    int rank, size, count;
    MPI_Comm_rank(w, &rank);
    MPI_Comm_size(w, &size);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int me = size == 1 ? t_rank : rank, them = size == 1 ? t_rank : from;
    long span_out, span_in, room = receive == LONGER ? total + 40000 : total;
    MPI_Datatype a = type_of(out, total, &span_out), b = type_of(in, room, &span_in);
    unsigned char *from_here = fresh(span_out), *to_here = fresh(span_in), *attached = NULL;
    fill(from_here, out, total, me, message);
    MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status s, both[2];
    MPI_Message m;
    int tag = message % 1000;
    if (send == SENDRECV) {
        MPI_Sendrecv(from_here, 1, a, to, tag, to_here, 1, b, from, tag, w, &s);
    } else {
        /* Who sends first waits for nobody who waits for it. */
        int first = size > 1 && rank % 2 == 0 && rank != size - 1, late = send == SEND || send == SSEND;
        if (send == ISEND) MPI_Isend(from_here, 1, a, to, tag, w, &q[0]);
        if (send == PERSISTENT) MPI_Send_init(from_here, 1, a, to, tag, w, &q[0]), MPI_Start(&q[0]);
        if (send == BSEND) {
            int bytes;
            MPI_Pack_size(1, a, w, &bytes);
            MPI_Buffer_attach(attached = malloc(bytes + MPI_BSEND_OVERHEAD), bytes + MPI_BSEND_OVERHEAD);
            MPI_Bsend(from_here, 1, a, to, tag, w);
            memset(from_here, 0, span_out);
        }
        if (late && size == 1) MPI_Irecv(to_here, 1, b, from, tag, w, &q[1]), late = 2;
        if (late == 1 && first) (send == SEND ? MPI_Send : MPI_Ssend)(from_here, 1, a, to, tag, w);
        if (late == 2) {
            (send == SEND ? MPI_Send : MPI_Ssend)(from_here, 1, a, to, tag, w);
            MPI_Wait(&q[1], &s);
        } else if (receive == IRECV) {
            MPI_Irecv(to_here, 1, b, from, tag, w, &q[1]);
            if (late && !first) (send == SEND ? MPI_Send : MPI_Ssend)(from_here, 1, a, to, tag, w), late = 0;
            MPI_Waitall(2, q, both), s = both[1];
        } else if (receive == MRECV) {
            MPI_Mprobe(from, tag, w, &m, &s);
            MPI_Mrecv(to_here, 1, b, &m, &s);
        } else
            MPI_Recv(to_here, 1, b, receive == ANY ? MPI_ANY_SOURCE : from, receive == ANY ? MPI_ANY_TAG : tag, w, &s);
        if (late == 1 && !first) (send == SEND ? MPI_Send : MPI_Ssend)(from_here, 1, a, to, tag, w);
        MPI_Wait(&q[0], MPI_STATUS_IGNORE);
        if (send == PERSISTENT) MPI_Request_free(&q[0]);
    }
    MPI_Get_elements(&s, b, &count), EQ(count, in == EIGHTS ? total / 8 : total);
    EQ(s.MPI_SOURCE, from), EQ(s.MPI_TAG, tag);
    check(to_here, in, room, total, span_in, them, message);
    if (send != BSEND) check(from_here, out, total, total, span_out, me, message);
    int none;
    if (send == BSEND) MPI_Buffer_detach(&attached, &none), free(attached);
    MPI_Type_free(&a), MPI_Type_free(&b);
    free(from_here), free(to_here);
}

/* Many under way at once, taken in the reverse order. */
static void crowd(void) {
    PART("crowd");
    enum { MANY = 24 };
    int to = (t_rank + 1) % t_size, from = (t_rank + t_size - 1) % t_size;
    MPI_Request q[2 * MANY];
    MPI_Datatype a[MANY], b[MANY];
    unsigned char *out[MANY], *in[MANY];
    long span_out[MANY], span_in[MANY], total[MANY];
    for (int m = 0; m < MANY; m++) {
        total[m] = 20000 * (1 + m * 7 % 60);
        a[m] = type_of(m % LAYOUTS, total[m], &span_out[m]), b[m] = type_of((m / 2 + 1) % LAYOUTS, total[m], &span_in[m]);
        out[m] = fresh(span_out[m]), in[m] = fresh(span_in[m]);
        fill(out[m], m % LAYOUTS, total[m], t_rank, m);
        MPI_Isend(out[m], 1, a[m], to, m, MPI_COMM_WORLD, &q[m]);
    }
    for (int i = 0; i < MANY; i++) {
        int m = MANY - 1 - i;
        MPI_Irecv(in[m], 1, b[m], from, m, MPI_COMM_WORLD, &q[MANY + m]);
    }
    MPI_Waitall(2 * MANY, q, MPI_STATUSES_IGNORE);
    for (int m = 0; m < MANY; m++) {
        check(in[m], (m / 2 + 1) % LAYOUTS, total[m], total[m], span_in[m], from, m);
        MPI_Type_free(&a[m]), MPI_Type_free(&b[m]), free(out[m]), free(in[m]);
    }
}

/* The message is longer than the room for it. */
static void cut(int out, int in) {
    PART("cut");
    long span_out, span_in;
    MPI_Datatype a = type_of(out, 900000, &span_out), b = type_of(in, 700000, &span_in);
    unsigned char *from_here = fresh(span_out), *to_here = fresh(span_in);
    MPI_Request q;
    int class = 0, code;
    fill(from_here, out, 900000, t_rank, 5);
    MPI_Isend(from_here, 1, a, (t_rank + 1) % t_size, 5, MPI_COMM_WORLD, &q);
    code = MPI_Recv(to_here, 1, b, (t_rank + t_size - 1) % t_size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class), EQ(class, MPI_ERR_TRUNCATE);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    int n, wrong = 0;
    walk(in, 700000, places, lengths, &n);
    for (int i = 0; i + 1 < n; i++)
        for (long j = places[i] + lengths[i]; j < places[i + 1]; j++) wrong += to_here[j] != GAP;
    EQ(wrong, 0);
    MPI_Type_free(&a), MPI_Type_free(&b), free(from_here), free(to_here);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    places = malloc(400000 * sizeof *places), lengths = malloc(400000 * sizeof *lengths);
    long totals[] = {60000, 700000, 2100000};
    int message = 0;
    for (int out = 0; out < LAYOUTS; out++)
        for (int in = 0; in < LAYOUTS; in++) {
            PART("each with each");
            for (int i = 0; i < 4; i++, message++) {
                int send = (message + out) % SENDS, receive = (message / 3 + in) % RECEIVES;
                round_of(MPI_COMM_WORLD, send, receive, out, in, totals[i % 2], message);
            }
            PART("long");
            if ((out + in) % 2) round_of(MPI_COMM_WORLD, out % 2 ? SEND : ISEND, IRECV, out, in, totals[2], message++);
            PART("to itself");
            round_of(MPI_COMM_SELF, message % 2 ? ISEND : SENDRECV, message / 2 % RECEIVES, out, in, totals[1], message);
        }
    crowd();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (getenv("VMPI_JOBID"))
        for (int out = 0; out < LAYOUTS; out++) cut(out, (out + 2) % LAYOUTS);
    return t_end();
}
