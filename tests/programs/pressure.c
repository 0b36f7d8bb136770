/* Back-pressure: rank 0 receives late what the others have sent long ago. pressure [flood|isend|many|all|large] [messages] */
#include "t.h"
#include <time.h>
enum { BLOCK = 65536 };
static void be_late(void) {
    struct timespec late = {0, 300000000};
    nanosleep(&late, NULL);
}
/* Many small messages to a rank that receives late; 2000 bytes each third time. */
static void flood(long count) {
    unsigned char b[2000];
    if (t_rank == 0) be_late();
    for (long i = 0; i < count && t_rank < 2; i++) {
        int bytes = i % 3 ? 8 : 2000;
        t_fill(b, bytes, 1, (int)i);
        if (t_rank == 1) MPI_Send(b, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        if (t_rank == 0) {
            memset(b, 0, sizeof b);
            MPI_Recv(b, 2000, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!EQ(t_wrong(b, bytes, 1, (int)i), -1)) return;
        }
    }
}
/* Many large sends under way at once, received in the opposite order. */
static void isend(long count) {
    unsigned char *b = malloc(count * BLOCK);
    MPI_Request *q = malloc(count * sizeof *q);
    for (long i = 0; i < count && t_rank == 1; i++) {
        t_fill(b + i * BLOCK, BLOCK, 1, (int)i);
        MPI_Isend(b + i * BLOCK, BLOCK, MPI_BYTE, 0, (int)i, MPI_COMM_WORLD, &q[i]);
    }
    if (t_rank == 0) be_late();
    for (long i = count - 1; i >= 0 && t_rank == 0; i--) MPI_Irecv(b + i * BLOCK, BLOCK, MPI_BYTE, 1, (int)i, MPI_COMM_WORLD, &q[i]);
    if (t_rank < 2) MPI_Waitall((int)count, q, MPI_STATUSES_IGNORE);
    for (long i = 0; i < count && t_rank == 0; i++) EQ(t_wrong(b + i * BLOCK, BLOCK, 1, (int)i), -1);
    free(b), free(q);
}
/* All to one, from any source. */
static void many(long count) {
    long x[2] = {t_rank, 0}, *next = calloc(t_size, sizeof *next);
    for (; x[1] < count && t_rank != 0; x[1]++) MPI_Send(x, 2, MPI_LONG, 0, 7, MPI_COMM_WORLD);
    for (long i = 0; i < count * (t_size - 1) && t_rank == 0; i++) {
        MPI_Status s;
        MPI_Recv(x, 2, MPI_LONG, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &s);
        if (!EQ(s.MPI_SOURCE, x[0]) || !EQ(x[1], next[x[0]]++)) return;
    }
    free(next);
}
/* Everybody sends to everybody before anybody receives. */
static void all(long count) {
    MPI_Request *q = malloc(count * t_size * sizeof *q);
    unsigned char *b = malloc(3000), in[3000];
    t_fill(b, 3000, 0, 0);
    for (long i = 0, k = 0; i < count; i++)
        for (int to = 0; to < t_size; to++) MPI_Isend(b, (int)(i % 3000), MPI_BYTE, to, 5, MPI_COMM_WORLD, &q[k++]);
    for (long i = 0; i < count; i++) {
        for (int from = 0; from < t_size; from++) {
            MPI_Status s;
            int got;
            MPI_Recv(in, 3000, MPI_BYTE, from, 5, MPI_COMM_WORLD, &s);
            MPI_Get_count(&s, MPI_BYTE, &got);
            if (!EQ(got, i % 3000) || !EQ(memcmp(in, b, got), 0)) return;
        }
    }
    MPI_Waitall((int)(count * t_size), q, MPI_STATUSES_IGNORE);
    free(q), free(b);
}
/* Large messages round a ring: whole, scattered, and longer than the receive has room for. */
static void large(long bytes) {
    int to = (t_rank + 1) % t_size, from = (t_rank + t_size - 1) % t_size, class;
    unsigned char *a = malloc(bytes), *b = malloc(bytes);
    MPI_Request q;
    MPI_Datatype comb;
    t_fill(a, bytes, t_rank, 0);
    memset(b, 0, bytes);
    MPI_Sendrecv(a, bytes, MPI_BYTE, to, 0, b, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EQ(t_wrong(b, bytes, from, 0), -1);
    MPI_Type_vector(bytes / 2000, 1000, 2000, MPI_BYTE, &comb);
    MPI_Type_commit(&comb);
    memset(b, 0, bytes);
    MPI_Irecv(b, 1, comb, from, 1, MPI_COMM_WORLD, &q);
    MPI_Ssend(a, 1, comb, to, 1, MPI_COMM_WORLD);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    t_fill(a, bytes, from, 0);
    for (long i = 0; i < bytes; i++)
        if (!EQ(b[i], i / 2000 < bytes / 2000 && i % 2000 < 1000 ? a[i] : 0)) break;
    MPI_Type_free(&comb);
    t_fill(a, bytes, t_rank, 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 5; i++) {
        memset(b, 0, bytes);
        MPI_Irecv(b, bytes / 3, MPI_BYTE, from, 2, MPI_COMM_WORLD, &q);
        MPI_Send(a, bytes, MPI_BYTE, to, 2, MPI_COMM_WORLD);
        MPI_Error_class(MPI_Wait(&q, MPI_STATUS_IGNORE), &class);
        EQ(class, MPI_ERR_TRUNCATE);
        EQ(b[bytes / 3], 0);
        MPI_Sendrecv(a, bytes, MPI_BYTE, to, 3, b, bytes, MPI_BYTE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EQ(t_wrong(b, bytes, from, 0), -1);
    }
    free(a), free(b);
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "flood";
    long count = argc > 2 ? atol(argv[2]) : 0;
    if (!strcmp(what, "flood")) flood(count ? count : 200000);
    if (!strcmp(what, "isend")) isend(count ? count : 2000);
    if (!strcmp(what, "many")) many(count ? count : 20000);
    if (!strcmp(what, "all")) all(count ? count : 3000);
    if (!strcmp(what, "large")) large(count ? count : 3000000);
    say("%s done", what);
    return t_end();
}
