/* A token of BYTES goes LAPS times round; every hop is checked. ring [laps] [bytes] */
#include "t.h"
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int laps = argc > 1 ? atoi(argv[1]) : 100, bytes = argc > 2 ? atoi(argv[2]) : 8;
    int next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size;
    long hops = 0;
    unsigned char *token = malloc(bytes + sizeof hops);
    MPI_Status status;
    for (int lap = 0; lap < laps; lap++) {
        if (t_rank == 0) {
            t_fill(token, bytes, 0, lap);
            memcpy(token + bytes, &hops, sizeof hops);
            MPI_Send(token, bytes + sizeof hops, MPI_BYTE, next, lap % 100, MPI_COMM_WORLD);
        }
        MPI_Recv(token, bytes + sizeof hops, MPI_BYTE, previous, lap % 100, MPI_COMM_WORLD, &status);
        EQ(status.MPI_SOURCE, previous);
        EQ(t_wrong(token, bytes, 0, lap), -1);
        memcpy(&hops, token + bytes, sizeof hops);
        hops++;
        EQ(hops, (long)lap * t_size + (t_rank == 0 ? t_size : t_rank));
        memcpy(token + bytes, &hops, sizeof hops);
        if (t_rank != 0) MPI_Send(token, bytes + sizeof hops, MPI_BYTE, next, lap % 100, MPI_COMM_WORLD);
    }
    say("%d laps of %d bytes, last hop %ld", laps, bytes, hops);
    free(token);
    return t_end();
}
