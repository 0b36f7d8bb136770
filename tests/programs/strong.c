/* strong ROUNDS LIMIT_MS: large messages to a rank that computes, with its receives posted, and does not call MPI until all senders
 * say, by a byte in a pipe that MPI knows nothing of, that MPI_Send (odd ranks: MPI_Isend and MPI_Wait) has returned, or until the limit.
 * Rank 0 prints in how many rounds all were sent before; the contents are checked in each. */
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = 1 << 18, MOST = 8 };

static int sent_while_computing(int fd, int senders, double limit)
{
    double end = MPI_Wtime() + limit;
    volatile double work = 0;
    int sent = 0;
    while (sent < senders && MPI_Wtime() < end) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        char bytes[MOST];
        for (int i = 0; i < 1000; i++)
            work += i;
        if (poll(&ready, 1, 0) == 1)
            sent += (int)read(fd, bytes, sizeof bytes);
    }
    return sent;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = atoi(argv[1]), good = 0;
    double limit = atof(argv[2]) / 1e3;
    char name[64] = "";
    if (rank == 0) {
        snprintf(name, sizeof name, "/tmp/vmpi-strong-%d", (int)getpid());
        if (mkfifo(name, 0600) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    int fd = open(name, O_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(name);

    int *buffer = malloc(sizeof(int) * WORDS * (rank == 0 ? size : 1) * 2);
    MPI_Datatype spread;
    MPI_Type_vector(WORDS / 64, 64, 128, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[MOST];
        if (rank == 0) {
            memset(buffer, 0, sizeof(int) * WORDS * size * 2);
            for (int from = 1; from < size; from++)
                /* The last sender's message goes into a datatype with holes. */
                if (from == size - 1)
                    MPI_Irecv(buffer + 2 * WORDS * from, 1, spread, from, round, MPI_COMM_WORLD, &requests[from - 1]);
                else
                    MPI_Irecv(buffer + 2 * WORDS * from, WORDS, MPI_INT, from, round, MPI_COMM_WORLD, &requests[from - 1]);
            MPI_Barrier(MPI_COMM_WORLD);
            int sent = sent_while_computing(fd, size - 1, limit);
            good += sent == size - 1;
            MPI_Waitall(size - 1, requests, MPI_STATUSES_IGNORE);
            for (char byte; sent < size - 1; sent++)
                if (read(fd, &byte, 1) != 1)
                    MPI_Abort(MPI_COMM_WORLD, 2);
            for (int from = 1; from < size; from++)
                for (int i = 0; i < WORDS; i++) {
                    int at = from == size - 1 ? i / 64 * 128 + i % 64 : i;
                    if (buffer[2 * WORDS * from + at] != i * (round + 1) + from) {
                        printf("round %d, from %d: word %d is wrong\n", round, from, i);
                        MPI_Abort(MPI_COMM_WORLD, 3);
                    }
                }
        } else {
            for (int i = 0; i < WORDS; i++)
                buffer[i] = i * (round + 1) + rank;
            MPI_Barrier(MPI_COMM_WORLD);
            /* By now rank 0 is out of MPI (if not, no harm: it has posted its receives). */
            usleep(20000);
            if (rank % 2 == 1) {
                MPI_Isend(buffer, WORDS, MPI_INT, 0, round, MPI_COMM_WORLD, requests);
                MPI_Wait(requests, MPI_STATUS_IGNORE);
            } else {
                MPI_Send(buffer, WORDS, MPI_INT, 0, round, MPI_COMM_WORLD);
            }
            if (write(fd, "", 1) != 1)
                MPI_Abort(MPI_COMM_WORLD, 4);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("in %d of %d rounds all were sent while rank 0 computed\n", good, rounds);
    MPI_Type_free(&spread);
    free(buffer);
    MPI_Finalize();
    return 0;
}
