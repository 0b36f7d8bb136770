/* Large messages of many sizes, between ranks of one core and of two, in both directions at once, into short receives; every byte checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int rank, size, bad;
static unsigned char byte(long serial, long at) { return (unsigned char)(serial * 31 + at * 7 + (at >> 12)); }
static void fill(unsigned char *b, long bytes, long serial) {
    for (long i = 0; i < bytes; i++) b[i] = byte(serial, i);
}
static void check(const unsigned char *b, long bytes, long serial, long room, const char *what) {
    for (long i = 0; i < bytes; i++)
        if (b[i] != byte(serial, i)) {
            printf("[%d] %s %ld bytes: byte %ld is wrong\n", rank, what, bytes, i);
            bad++;
            return;
        }
    for (long i = bytes; i < room; i++)
        if (b[i] != 0xee) {
            printf("[%d] %s %ld bytes: byte %ld behind it was written\n", rank, what, bytes, i);
            bad++;
            return;
        }
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const long sizes[] = {65535, 65536, 65537, 131072, 200001, 1 << 20, (3 << 20) + 5};
    const long room = (4 << 20);
    unsigned char *out = malloc(room), *in = malloc(room + 64) + 8;
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int round = 0; round < 4; round++)
        for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            long bytes = sizes[s], serial = round * 100 + s;
            MPI_Status status;
            int count;
            /* One after the other: the sender waits. */
            memset(in, 0xee, bytes + 64);
            fill(out, bytes, serial + rank);
            if (rank % 2 == 0) MPI_Send(out, bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD);
            MPI_Recv(in, bytes + 64, MPI_BYTE, last, 1, MPI_COMM_WORLD, &status);
            if (rank % 2) MPI_Send(out, bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD);
            MPI_Get_count(&status, MPI_BYTE, &count);
            if (count != bytes) printf("[%d] count %d of %ld\n", rank, count, bytes), bad++;
            check(in, bytes, serial + last, bytes + 64, "send");
            /* The sent buffer is the program's again. */
            memset(out, 0, bytes);
            /* All at once. */
            memset(in, 0xee, bytes + 64);
            fill(out, bytes, serial + rank + 7);
            MPI_Sendrecv(out, bytes, MPI_BYTE, next, 2, in, bytes + 64, MPI_BYTE, last, 2, MPI_COMM_WORLD, &status);
            check(in, bytes, serial + last + 7, bytes + 64, "sendrecv");
            /* Nonblocking, the receive posted late. */
            MPI_Request request;
            memset(in, 0xee, bytes + 64);
            MPI_Isend(out, bytes, MPI_BYTE, next, 3, MPI_COMM_WORLD, &request);
            MPI_Recv(in, bytes, MPI_BYTE, last, 3, MPI_COMM_WORLD, &status);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check(in, bytes, serial + last + 7, bytes + 64, "isend");
            /* Truncation. */
            MPI_Isend(out, bytes, MPI_BYTE, next, 4, MPI_COMM_WORLD, &request);
            memset(in, 0xee, bytes + 64);
            int class, code = MPI_Recv(in, bytes - 4096, MPI_BYTE, last, 4, MPI_COMM_WORLD, &status);
            MPI_Error_class(code, &class);
            if (class != MPI_ERR_TRUNCATE) printf("[%d] class %d of a truncated message\n", rank, class), bad++;
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (long i = bytes - 4096; i < bytes + 64; i++)
                if (in[i] != 0xee) {
                    printf("[%d] a truncated message was written past the buffer\n", rank), bad++;
                    break;
                }
        }
    int all;
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%s\n", all ? "some checks fail" : "all checks hold");
    MPI_Finalize();
    return all != 0;
}
