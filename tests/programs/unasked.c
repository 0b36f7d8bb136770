/* Messages of up to a few hundred KB from the lower half of the ranks to the upper half: received before or after they have come, by one block or several, into too
 * little room, taken by a probe, many at a time, and in the synchronous mode, whose sender must wait. unasked [ROUNDS [unreadable]]: also out of memory that nobody
 * can read, of which both ends hear under vmpi. */
#include "t.h"
#include <sys/mman.h>
#include <unistd.h>
static int peer, sends;
static const int sizes[] = {16385, 40000, 65536, 65537, 100000, 131072, 131073, 200000, 262144, 262145, 400000};
enum { SIZES = sizeof sizes / sizeof *sizes, MANY = 24 };
static unsigned char *buffer[MANY];
static void fill(unsigned char *to, int bytes, int seed) {
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(i * 7 + seed + (i >> 9));
}
static int holds(const unsigned char *in, int bytes, int seed) {
    for (int i = 0; i < bytes; i++)
        if (in[i] != (unsigned char)(i * 7 + seed + (i >> 9))) return 0;
    return 1;
}
static void turn(void) { MPI_Barrier(MPI_COMM_WORLD); }
/* The receive is there before the message, or the message before the receive. */
static void early_and_late(int bytes, int seed) {
    MPI_Request request;
    MPI_Status status;
    int count;
    for (int late = 0; late < 2; late++) {
        if (sends) {
            fill(buffer[0], bytes, seed);
            turn();
            MPI_Isend(buffer[0], bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
            if (late) turn();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            memset(buffer[0], 0, bytes);
            if (!late) MPI_Irecv(buffer[0], bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
            turn();
            if (late) {
                MPI_Probe(peer, 1, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_BYTE, &count);
                EQ(count, bytes);
                usleep(2000);
                turn();
                MPI_Irecv(buffer[0], bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
            }
            MPI_Wait(&request, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            EQ(count, bytes);
            EQ(status.MPI_SOURCE, peer);
            OK(holds(buffer[0], bytes, seed));
        }
    }
}
/* Into a column of a matrix, and out of one. */
static void scattered(int bytes, int seed) {
    MPI_Datatype column;
    int rows = bytes / 16;
    MPI_Type_vector(rows, 16, 32, MPI_BYTE, &column);
    MPI_Type_commit(&column);
    unsigned char *wide = malloc(rows * 32L);
    memset(wide, 0, rows * 32L);
    if (sends) {
        for (int i = 0; i < rows; i++) fill(wide + i * 32, 16, seed + i);
        MPI_Send(wide, 1, column, peer, 2, MPI_COMM_WORLD);
        fill(buffer[0], bytes, seed);
        MPI_Send(buffer[0], rows * 16, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buffer[0], rows * 16, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int good = 1;
        for (int i = 0; i < rows; i++) good = good && holds(buffer[0] + i * 16, 16, seed + i);
        OK(good);
        MPI_Recv(wide, 1, column, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fill(buffer[1], bytes, seed);
        good = 1;
        for (int i = 0; i < rows; i++) good = good && !memcmp(wide + i * 32, buffer[1] + i * 16, 16) && wide[i * 32 + 16] == 0;
        OK(good);
    }
    free(wide);
    MPI_Type_free(&column);
}
/* The receive has room for a part only, or for nothing; behind it comes another message. */
static void truncated(int bytes, int seed) {
    MPI_Status status;
    int class, code;
    for (int room = 0; room <= bytes / 2; room += bytes / 2) {
        if (sends) {
            fill(buffer[0], bytes, seed);
            MPI_Send(buffer[0], bytes, MPI_BYTE, peer, 4, MPI_COMM_WORLD);
            MPI_Send(buffer[0], bytes, MPI_BYTE, peer, 4, MPI_COMM_WORLD);
        } else {
            memset(buffer[0], 99, bytes);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
            code = MPI_Recv(buffer[0], room, MPI_BYTE, peer, 4, MPI_COMM_WORLD, &status);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
            MPI_Error_class(code, &class);
            EQ(class, MPI_ERR_TRUNCATE);
            /* Open MPI 4 writes there. */
            STRICT(buffer[0][room] == 99 && buffer[0][bytes - 1] == 99);
            MPI_Recv(buffer[0], bytes, MPI_BYTE, peer, 4, MPI_COMM_WORLD, &status);
            OK(holds(buffer[0], bytes, seed));
        }
    }
}
/* More than may be under way unasked, received in another order than sent. */
static void many(int bytes, int seed) {
    MPI_Request requests[MANY];
    for (int i = 0; i < MANY; i++) {
        if (sends) {
            fill(buffer[i], bytes, seed + i);
            MPI_Isend(buffer[i], bytes, MPI_BYTE, peer, 10 + i, MPI_COMM_WORLD, &requests[i]);
        } else memset(buffer[i], 0, bytes);
    }
    if (!sends) {
        usleep(1000);
        for (int i = 0; i < MANY; i++) {
            int tag = (i * 7 + 5) % MANY;
            MPI_Irecv(buffer[tag], bytes, MPI_BYTE, peer, 10 + tag, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; !sends && i < MANY; i++) OK(holds(buffer[i], bytes, seed + i));
}
/* Who sends in the synchronous mode waits for the match, wherever the bytes are. */
static void synchronous(int bytes, int seed) {
    if (sends) {
        MPI_Request request;
        int done = 0;
        fill(buffer[0], bytes, seed);
        MPI_Issend(buffer[0], bytes, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &request);
        for (int i = 0; i < 20 && !done; i++) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            usleep(1000);
        }
        OK(!done);
        turn();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        memset(buffer[0], 0, bytes);
        turn();
        MPI_Recv(buffer[0], bytes, MPI_BYTE, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        OK(holds(buffer[0], bytes, seed));
    }
}
/* Of two, a matched probe takes the first, which is received last. */
static void taken(int bytes, int seed) {
    if (sends) {
        fill(buffer[0], bytes, seed);
        fill(buffer[1], bytes, seed + 1);
        MPI_Request two[2];
        MPI_Isend(buffer[0], bytes, MPI_BYTE, peer, 6, MPI_COMM_WORLD, &two[0]);
        MPI_Isend(buffer[1], bytes, MPI_BYTE, peer, 6, MPI_COMM_WORLD, &two[1]);
        MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
    } else {
        MPI_Message message;
        MPI_Status status;
        MPI_Mprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &message, &status);
        for (int i = 0; i < 2; i++) memset(buffer[i], 0, 1 << 19);
        MPI_Recv(buffer[1], bytes, MPI_BYTE, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Mrecv(buffer[0], bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        OK(holds(buffer[0], bytes, seed) && holds(buffer[1], bytes, seed + 1));
    }
}
/* Both ends hear of it, and what follows is right. */
static void unreadable(int bytes, int late) {
    MPI_Status status;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (sends) {
        /* All of it, or its end. */
        for (int part = 0; part < 2; part++) {
            int skip = part ? bytes / 2 / 4096 * 4096 : 0, all = bytes + 8192;
            unsigned char *gone = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            mprotect(gone + skip, all - skip, PROT_NONE);
            /* A message that has left already, as far as its sender knows, is an error of the receiver's only. */
            MPI_Send(gone, bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD);
            OK(MPI_Ssend(gone, bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD) != MPI_SUCCESS);
            munmap(gone, all);
        }
        fill(buffer[0], bytes, 3);
        MPI_Send(buffer[0], bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD);
    } else {
        if (late) usleep(20000);
        for (int i = 0; i < 4; i++) OK(MPI_Recv(buffer[0], bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &status) != MPI_SUCCESS);
        OK(MPI_Recv(buffer[0], bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
        OK(holds(buffer[0], bytes, 3));
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    sends = t_rank < t_size / 2;
    peer = sends ? t_rank + t_size / 2 : t_rank - t_size / 2;
    for (int i = 0; i < MANY; i++) buffer[i] = malloc(1 << 19);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < SIZES; i++) {
            int seed = round * 31 + i + 100 * (t_rank % (t_size / 2));
            early_and_late(sizes[i], seed);
            scattered(sizes[i], seed);
            truncated(sizes[i], seed);
            many(sizes[i], seed);
            synchronous(sizes[i], seed);
            taken(sizes[i], seed);
        }
    for (int late = 0; late < 2 && argc > 2; late++) {
        unreadable(100000, late);
        unreadable(200000, late);
        unreadable(400000, late);
    }
    for (int i = 0; i < MANY; i++) free(buffer[i]);
    return t_end();
}
