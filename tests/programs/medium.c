/* Messages around the limits of what goes through shared memory (16 to 512 KiB), more of them at once than a sender has blocks for, taken
 * in the reverse order or as they come, dense and strided: each has what its sender wrote, though that one writes on as soon as MPI lets it. */
#include "t.h"
enum { MESSAGES = 180, LIMITS = 6, MOST = 524288 + 8 };
static const int limits[LIMITS] = {16384, 32768, 65536, 131072, 262144, 524288};

static int bytes_of(int message) { return limits[message % LIMITS] + message / LIMITS % 5 - 2; }

static unsigned char value(int from, int message, int i) { return (unsigned char)(from * 31 + message * 7 + i % 251); }

static void fill(unsigned char *buffer, int from, int message, int step) {
    for (int i = 0; i < bytes_of(message); i++) buffer[(long)i * step] = value(from, message, i);
}

static void check(const unsigned char *buffer, int from, int message) {
    int wrong = 0;
    for (int i = 0; i < bytes_of(message); i++) wrong += buffer[i] != value(from, message, i);
    EQ(wrong, 0);
}

static void all_to(int step, int reverse) {
    int to = (t_rank + 1) % t_size, from = (t_rank + t_size - 1) % t_size;
    unsigned char *out[MESSAGES], *in = malloc(MOST);
    MPI_Request requests[MESSAGES];
    MPI_Datatype types[MESSAGES];
    for (int m = 0; m < MESSAGES; m++) {
        out[m] = malloc((long)bytes_of(m) * step);
        fill(out[m], t_rank, m, step);
        MPI_Type_vector(bytes_of(m), 1, step, MPI_BYTE, &types[m]);
        MPI_Type_commit(&types[m]);
        MPI_Isend(out[m], 1, types[m], to, m, MPI_COMM_WORLD, &requests[m]);
    }
    for (int i = 0; i < MESSAGES; i++) {
        int m = reverse ? MESSAGES - 1 - i : i;
        MPI_Status status;
        int count;
        memset(in, 0, MOST);
        MPI_Recv(in, MOST, MPI_BYTE, from, m, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        EQ(count, bytes_of(m));
        check(in, from, m);
    }
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int m = 0; m < MESSAGES; m++) {
        MPI_Type_free(&types[m]);
        free(out[m]);
    }
    free(in);
}

/* One buffer for all: it is written again as soon as MPI_Send returns. */
static void one_buffer(void) {
    int odd = t_rank % 2, partner = odd ? t_rank - 1 : t_rank + 1;
    unsigned char *buffer = malloc(MOST);
    if (partner < t_size)
        for (int m = 0; m < MESSAGES; m++) {
            if (!odd) {
                fill(buffer, t_rank, m, 1);
                MPI_Send(buffer, bytes_of(m), MPI_BYTE, partner, 1, MPI_COMM_WORLD);
            } else {
                MPI_Recv(buffer, MOST, MPI_BYTE, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                check(buffer, partner, m);
            }
        }
    free(buffer);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    PART("dense, as they come");
    all_to(1, 0);
    PART("dense, in reverse");
    all_to(1, 1);
    PART("strided, in reverse");
    all_to(2, 1);
    PART("one buffer");
    one_buffer();
    say("%d messages", MESSAGES);
    return t_end();
}
