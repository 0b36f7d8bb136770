/* polls MESSAGES SEED: all ranks send each other messages of all sizes and receive them by each kind of poll in turn (MPI_Test, Testany, Testsome, Testall,
 * Request_get_status, Iprobe, Improbe), computing a little between the polls or not at all. Every byte is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { WINDOW = 6, KINDS = 7, SENDS = 4, MOST = 300000, RANKS = 64 };
static const int sizes[] = {0, 8, 700, 4096, 9000, 70000, MOST};
static int rank, size;
static unsigned long long state;
static unsigned draw(unsigned below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}
static void fail(const char *what, long a, long b) {
    fprintf(stderr, "rank %d: %s: %ld, %ld\n", rank, what, a, b);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

/* What is left to do. */
static int to_send, to_receive, sent_to[RANKS], got_from[RANKS];
static int *destinations;
static char *outgoing[SENDS], *incoming[WINDOW];
static MPI_Request sends[SENDS], receives[WINDOW];

static char byte(int from, int to, int number, int at) { return (char)(from * 7 + to * 13 + number * 31 + at * 3); }
static int bytes_of(int from, int to, int number) { return sizes[(from + 2 * to + 3 * number) % 7]; }

/* One more message if there is room for it. The polls of sends count, too. */
static void send_one(void) {
    int place, flag;
    MPI_Testany(SENDS, sends, &place, &flag, MPI_STATUS_IGNORE);
    for (place = 0; place < SENDS && sends[place] != MPI_REQUEST_NULL; place++)
        ;
    if (place == SENDS || to_send == 0) return;
    int to = destinations[--to_send], number = sent_to[to]++, bytes = bytes_of(rank, to, number);
    for (int at = 0; at < bytes; at++) outgoing[place][at] = byte(rank, to, number, at);
    MPI_Isend(outgoing[place], bytes, MPI_BYTE, to, 5, MPI_COMM_WORLD, &sends[place]);
}
static void check(const char *message, const MPI_Status *status) {
    int bytes, from = status->MPI_SOURCE, number = got_from[from]++;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes != bytes_of(from, rank, number)) fail("a message of a wrong size", bytes, bytes_of(from, rank, number));
    for (int at = 0; at < bytes; at++)
        if (message[at] != byte(from, rank, number, at)) fail("a wrong byte", from, at);
    to_receive--;
}
static volatile double heat = 1;
static void between(void) {
    send_one();
    if (draw(4) == 0)
        for (unsigned i = draw(5000); i > 0; i--) heat = heat * 0.999 + 0.001;
}
/* One receive at a time may be posted where messages of one rank are told apart by their order. */
static void by_requests(int kind, int count) {
    for (int i = 0; i < count; i++) {
        int flag = 0, index = 0, done = 0;
        MPI_Status status, statuses[WINDOW];
        MPI_Irecv(incoming[0], MOST, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &receives[0]);
        /* Others that nothing comes for. */
        for (int j = 1; j < WINDOW; j++)
            MPI_Irecv(incoming[j], MOST, MPI_BYTE, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &receives[j]);
        while (!flag && !done) {
            between();
            switch (kind) {
            case 0: MPI_Test(&receives[0], &flag, &status); break;
            case 1: MPI_Testany(WINDOW, receives, &index, &flag, &status); break;
            case 2: {
                int indices[WINDOW];
                MPI_Testsome(WINDOW, receives, &done, indices, statuses);
                if (done) index = indices[0], status = statuses[0];
                break;
            }
            case 3: MPI_Testall(1, receives, &flag, statuses), status = statuses[0]; break;
            default:
                MPI_Request_get_status(receives[0], &flag, &status);
                /* Which leaves the request as it was. */
                if (flag) MPI_Wait(&receives[0], &status);
            }
        }
        if (index != 0 || done > 1) fail("a receive that nothing came for is over", index, done);
        check(incoming[0], &status);
        for (int j = 1; j < WINDOW; j++) {
            MPI_Cancel(&receives[j]);
            MPI_Wait(&receives[j], &status);
            MPI_Test_cancelled(&status, &flag);
            if (!flag) fail("a receive was not cancelled", j, 0);
        }
    }
}
static void by_probes(int kind, int count) {
    for (int i = 0; i < count; i++) {
        int flag = 0;
        MPI_Status status;
        MPI_Message message;
        while (!flag) {
            between();
            if (kind == 5)
                MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &status);
            else
                MPI_Improbe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &message, &status);
        }
        if (kind == 5)
            MPI_Recv(incoming[0], MOST, MPI_BYTE, status.MPI_SOURCE, 5, MPI_COMM_WORLD, &status);
        else
            MPI_Mrecv(incoming[0], MOST, MPI_BYTE, &message, &status);
        check(incoming[0], &status);
    }
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3 || size > RANKS) fail("usage: polls MESSAGES SEED, up to so many ranks", argc, RANKS);
    to_send = atoi(argv[1]);
    state = strtoull(argv[2], NULL, 10) * 1000003 + (unsigned)rank * 7919 + 88172645463325252ull;
    destinations = malloc(sizeof(int) * to_send);
    int counts[RANKS] = {0}, expected[RANKS];
    for (int i = 0; i < to_send; i++) counts[destinations[i] = (int)draw(size)]++;
    MPI_Alltoall(counts, 1, MPI_INT, expected, 1, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) to_receive += expected[from];
    for (int i = 0; i < SENDS; i++) outgoing[i] = malloc(MOST), sends[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < WINDOW; i++) incoming[i] = malloc(MOST);
    while (to_receive > 0) {
        int kind = (int)draw(KINDS), count = 1 + (int)draw(8);
        if (count > to_receive) count = to_receive;
        if (kind < 5)
            by_requests(kind, count);
        else
            by_probes(kind, count);
    }
    while (to_send > 0) send_one();
    for (int flag = 0; !flag;) MPI_Testall(SENDS, sends, &flag, MPI_STATUSES_IGNORE);
    for (int from = 0; from < size; from++)
        if (got_from[from] != expected[from]) fail("messages are missing", from, got_from[from]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("all messages came\n");
    MPI_Finalize();
    return 0;
}
