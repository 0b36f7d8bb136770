/* What programs pay that look for messages between pieces of their work: a look that finds nothing (ns), a message that both sides poll for, and
 * updates of a table that is spread over the ranks (us). An even number of ranks. */
#include "bench.h"
#include <stdint.h>
enum { MANY = 16, BUCKET = 256, TABLE = 1 << 16, UPDATES = 20000, RECEIVES = 4, DATA = 1, LAST = 2 };
static int rank, size;
static void fail(const char *what, long got) {
    fprintf(stderr, "rank %d: %s: %ld\n", rank, what, got);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

/* Looks, while nobody sends anything. */
static MPI_Request posted[MANY];
static char nothing[MANY][8192];
static void test_one(long times) {
    for (long i = 0; i < times; i++) {
        int flag;
        MPI_Test(&posted[0], &flag, MPI_STATUS_IGNORE);
        if (flag) fail("MPI_Test found a message that nobody sent", i);
    }
}
static void test_many(long times) {
    for (long i = 0; i < times; i++) {
        int flag, index;
        MPI_Testany(MANY, posted, &index, &flag, MPI_STATUS_IGNORE);
        if (flag) fail("MPI_Testany found a message that nobody sent", i);
    }
}
static void probe(long times) {
    for (long i = 0; i < times; i++) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (flag) fail("MPI_Iprobe found a message that nobody sent", i);
    }
}

/* All pairs of neighbours at the same time. */
static void await(MPI_Request *request) {
    for (int flag = 0; !flag;) MPI_Test(request, &flag, MPI_STATUS_IGNORE);
}
static void polled(long times) {
    int peer = rank ^ 1;
    long out, in = 0;
    for (long i = 0; i < times; i++) {
        MPI_Request request;
        out = i;
        if (rank % 2 == 0) MPI_Send(&out, 1, MPI_LONG, peer, DATA, MPI_COMM_WORLD);
        MPI_Irecv(&in, 1, MPI_LONG, peer, DATA, MPI_COMM_WORLD, &request);
        await(&request);
        if (in != i) fail("a message out of order", in);
        if (rank % 2) MPI_Send(&out, 1, MPI_LONG, peer, DATA, MPI_COMM_WORLD);
    }
}

/* Each rank updates words of the others' parts of the table: it gathers them by owner, sends full buckets, and looks after each one for what the others sent. */
static uint64_t *table, sum;
static uint64_t incoming[RECEIVES][BUCKET];
static MPI_Request receives[RECEIVES];
static int finished;
static void apply(const uint64_t *values, int count) {
    for (int i = 0; i < count; i++) {
        table[values[i] % TABLE] ^= values[i];
        sum += values[i];
    }
}
static int look(void) {
    int index, flag, count;
    MPI_Status status;
    MPI_Testany(RECEIVES, receives, &index, &flag, &status);
    if (!flag) return 0;
    MPI_Get_count(&status, MPI_UINT64_T, &count);
    apply(incoming[index], count);
    finished += status.MPI_TAG == LAST;
    MPI_Irecv(incoming[index], BUCKET, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receives[index]);
    return 1;
}
static void update(long times) {
    static uint64_t bucket[1024][BUCKET], outgoing[BUCKET];
    static int filled[1024];
    MPI_Request sent = MPI_REQUEST_NULL;
    uint64_t random = 88172645463325252u + (uint64_t)rank, expected = 0, all[2], mine[2];
    finished = 0, sum = 0;
    for (int i = 0; i < RECEIVES; i++)
        MPI_Irecv(incoming[i], BUCKET, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receives[i]);
    for (long left = times * UPDATES; left >= 0; left--) {
        for (int to = 0; to < size; to++) {
            /* In the end what is left goes to everybody, as the last. */
            if (left ? filled[to] < BUCKET : to == rank) {
                if (left) continue;
                apply(bucket[to], filled[to]), finished++;
            } else {
                for (int flag = 0; !flag; look()) MPI_Test(&sent, &flag, MPI_STATUS_IGNORE);
                memcpy(outgoing, bucket[to], sizeof outgoing);
                MPI_Isend(outgoing, filled[to], MPI_UINT64_T, to, left ? DATA : LAST, MPI_COMM_WORLD, &sent);
            }
            filled[to] = 0;
        }
        if (!left) break;
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        int to = (int)(random >> 40) % size;
        expected += random;
        bucket[to][filled[to]++] = random;
        look();
    }
    while (finished < size) look();
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    /* All have come; of several that are complete MPI_Testany may have told the last one first. Nothing more comes before everybody is here. */
    for (int i = 0; i < RECEIVES; i++) {
        int cancelled, count;
        MPI_Status status;
        MPI_Cancel(&receives[i]);
        MPI_Wait(&receives[i], &status);
        MPI_Test_cancelled(&status, &cancelled);
        if (cancelled) continue;
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        apply(incoming[i], count);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    mine[0] = expected, mine[1] = sum;
    MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (all[0] != all[1]) fail("updates were lost or came twice", (long)(all[1] - all[0]));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size % 2 || size > 1024) {
        if (rank == 0) fprintf(stderr, "polling needs an even number of ranks, up to 1024\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    pin_rank(rank);
    for (int i = 0; i < MANY; i++)
        MPI_Irecv(nothing[i], sizeof nothing[i], MPI_BYTE, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &posted[i]);
    report("test_one", 1e3 * measure(test_one));
    report("test_many", 1e3 * measure(test_many));
    for (int i = 0; i < MANY; i++) {
        MPI_Cancel(&posted[i]);
        MPI_Wait(&posted[i], MPI_STATUS_IGNORE);
    }
    report("probe", 1e3 * measure(probe));
    report("polled", measure(polled) / 2);
    table = calloc(TABLE, sizeof *table);
    report("update", measure(update) / UPDATES / size);
    free(table);
    MPI_Finalize();
    return 0;
}
