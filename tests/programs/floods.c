/* All send first and receive later: very many messages that no receive has asked for. floods [parts] [messages] [bytes]
 * parts: t by tag, in the opposite order; s by source; w with wildcards, and probes; p payloads that lie outside the message; b both directions; l, i for ever, with MPI_Send, MPI_Isend; r rank 0 waits
 * for another message meanwhile, not in a barrier. */
#include "t.h"
static int bytes = 8;
static long many = 20000;
static unsigned char *b;
/* To rank 0, while it waits for all in a barrier. */
static void send_all(long tags) {
    for (long i = 0; i < many && t_rank; i++) {
        t_fill(b, bytes, t_rank, (int)i);
        MPI_Send(b, bytes, MPI_BYTE, 0, (int)(i % tags), MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}
/* One that `source` and `tag` name; its source and tag come back. */
static MPI_Status take_any(int source, int tag) {
    MPI_Status s;
    memset(b, 0, bytes);
    MPI_Recv(b, bytes, MPI_BYTE, source, tag, MPI_COMM_WORLD, &s);
    return s;
}
static int take(int source, int tag, int from, long i) {
    MPI_Status s = take_any(source, tag);
    return EQ(s.MPI_SOURCE, from) && EQ(t_wrong(b, bytes, from, (int)i), -1);
}
static void by_tag(void) {
    PART("by tag");
    send_all(many);
    for (long i = many - 1; i >= 0 && !t_rank; i--)
        for (int from = t_size - 1; from > 0; from--)
            if (!take(from, (int)i, from, i)) return;
}
static void by_source(void) {
    PART("by source");
    send_all(1);
    for (int from = t_size - 1; from > 0 && !t_rank; from--)
        for (long i = 0; i < many; i++)
            if (!take(from, 0, from, i)) return;
}
enum { TAGS = 1000 };
static void with_wildcards(void) {
    PART("with wildcards");
    long *taken = calloc((size_t)t_size * TAGS, sizeof *taken);
    send_all(TAGS);
    if (!t_rank) {
        MPI_Status s;
        int flag;
        for (int i = 0; i < 2000; i++) {
            MPI_Iprobe(MPI_ANY_SOURCE, TAGS, MPI_COMM_WORLD, &flag, &s);
            if (!EQ(flag, 0)) return;
            MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &s);
            if (!EQ(flag, 0)) return;
        }
        /* Each tag's oldest message of the last rank; then what is left, in the order of each source and tag. */
        for (int tag = TAGS - 1; tag >= 0; tag--, taken[(t_size - 1) * TAGS + tag + 1]++)
            if (!take(t_size - 1, tag, t_size - 1, tag)) return;
        for (long i = 0; i < many * (t_size - 1) - TAGS; i++) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
            int from = s.MPI_SOURCE, tag = s.MPI_TAG;
            s = take_any(i % 3 ? from : MPI_ANY_SOURCE, i % 3 == 1 ? MPI_ANY_TAG : tag);
            if (!EQ(s.MPI_TAG, tag) || (i % 3 && !EQ(s.MPI_SOURCE, from))) return;
            long number = tag + TAGS * taken[s.MPI_SOURCE * TAGS + tag]++;
            if (!EQ(t_wrong(b, bytes, s.MPI_SOURCE, (int)number), -1)) return;
        }
    }
    free(taken);
}
/* Everybody to the next one, and nobody receives before all have sent. */
static void both(void) {
    PART("both directions");
    int to = (t_rank + 1) % t_size, from = (t_rank + t_size - 1) % t_size;
    MPI_Request *q = malloc(many * sizeof *q);
    for (long i = 0; i < many; i++) {
        t_fill(b, 8, t_rank, (int)i);
        if (i % 2) MPI_Send(b, 8, MPI_BYTE, to, 7, MPI_COMM_WORLD), q[i] = MPI_REQUEST_NULL;
        else MPI_Isend(b, 0, MPI_BYTE, to, 7, MPI_COMM_WORLD, &q[i]);
    }
    for (long i = 0; i < many; i++) {
        MPI_Status s;
        int got;
        MPI_Recv(b, 8, MPI_BYTE, from, 7, MPI_COMM_WORLD, &s);
        MPI_Get_count(&s, MPI_BYTE, &got);
        if (!EQ(got, i % 2 ? 8 : 0) || !EQ(t_wrong(b, got, from, (int)i), -1)) return;
    }
    MPI_Waitall((int)many, q, MPI_STATUSES_IGNORE);
    free(q);
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const char *parts = argc > 1 ? argv[1] : "tswpb";
    if (argc > 2) many = atol(argv[2]);
    if (argc > 3) bytes = atoi(argv[3]);
    b = malloc(bytes + 4096);
    if (strchr(parts, 't')) by_tag();
    if (strchr(parts, 's')) by_source();
    if (strchr(parts, 'w')) with_wildcards();
    if (strchr(parts, 'p')) bytes = 2000, many /= 2, by_source();
    if (strchr(parts, 'b')) both();
    while (strchr(parts, 'l') && t_rank == 1) MPI_Send(b, bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    while (strchr(parts, 'i') && t_rank == 1) {
        MPI_Request q;
        MPI_Isend(b, bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &q);
        MPI_Request_free(&q);
    }
    if (strchr(parts, 'r') && !t_rank) MPI_Recv(b, bytes, MPI_BYTE, 1, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    free(b);
    return t_end();
}
