/* Rank 1 holds all the memory that there is for messages that no receive has asked for, while rank 0 waits in a barrier behind one that found none, and its sender,
 * rank 2, for room. Then rank 3 has rank 1 take its messages. hoard [messages to rank 0] [messages to rank 1] [r|n] r: rank 0 waits for a message of rank 3, not in a
 * barrier; n: rank 1 is never told. */
#include "t.h"
#include <unistd.h>
enum { BYTES = 8, GO = 1000 };
static void send_all(const int *many) {
    MPI_Request *q = malloc((many[0] + many[1]) * sizeof *q);
    unsigned char b[BYTES];
    t_fill(b, BYTES, 2, 7);
    int at = 0;
    for (int to = 1; to >= 0; to--)
        for (int i = 0; i < many[to]; i++) MPI_Isend(b, BYTES, MPI_BYTE, to, i % 100, MPI_COMM_WORLD, &q[at++]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(at, q, MPI_STATUSES_IGNORE);
    free(q);
}
static void take_all(int many) {
    for (int i = 0; i < many; i++) {
        unsigned char b[BYTES] = {0};
        MPI_Recv(b, BYTES, MPI_BYTE, 2, i % 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!EQ(t_wrong(b, BYTES, 2, 7), -1)) return;
    }
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    const char *parts = argc > 3 ? argv[3] : "";
    int many[] = {argc > 1 ? atoi(argv[1]) : 3000, argc > 2 ? atoi(argv[2]) : 15000};
    switch (t_rank) {
    case 0:
        if (strchr(parts, 'r')) MPI_Recv(NULL, 0, MPI_BYTE, 3, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else MPI_Barrier(MPI_COMM_WORLD);
        take_all(many[0]);
        if (strchr(parts, 'r')) MPI_Barrier(MPI_COMM_WORLD);
        break;
    case 1:
        MPI_Recv(NULL, 0, MPI_BYTE, 3, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        take_all(many[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case 2:
        send_all(many);
        break;
    default:
        usleep(700000);
        if (t_rank == 3 && !strchr(parts, 'n')) MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        if (t_rank == 3 && strchr(parts, 'r')) MPI_Send(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return t_end();
}
