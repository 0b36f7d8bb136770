/* both_ways MIB [ROUNDS]: ranks 0 and 1 send each other so much at the same time, contiguous and as every second block; every byte is checked. */
#include "t.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char byte_at(size_t at, int rank, int round) { return (unsigned char)((at * 31 + (at >> 12) * 7 + rank * 101 + round) ^ (at >> 20)); }

int main(int argc, char **argv)
{
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t bytes = (size_t)atoi(argc > 1 ? argv[1] : "8") << 20;
    int rounds = argc > 2 ? atoi(argv[2]) : 2, peer = 1 - rank;
    unsigned char *out = malloc(bytes), *in = malloc(bytes);
    MPI_Datatype every_second;
    MPI_Type_vector((int)(bytes / 8192), 4096, 8192, MPI_BYTE, &every_second);
    MPI_Type_commit(&every_second);
    for (int round = 0; round < rounds && rank < 2; round++) {
        int strided = round % 2;
        MPI_Request r[2];
        for (size_t at = 0; at < bytes; at++)
            out[at] = byte_at(at, rank, round);
        memset(in, 0xa5, bytes);
        MPI_Irecv(in, strided ? 1 : (int)bytes, strided ? every_second : MPI_BYTE, peer, round, MPI_COMM_WORLD, &r[0]);
        MPI_Isend(out, strided ? 1 : (int)bytes, strided ? every_second : MPI_BYTE, peer, round, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        for (size_t at = 0; at < bytes; at++)
            wrong += in[at] != (strided && at / 4096 % 2 ? 0xa5 : byte_at(at, peer, round));
        if (rank == 0 && rounds > 2) {
            printf("round %d\n", round);
            fflush(stdout);
        }
    }
    if (wrong)
        printf("rank %d: %d bytes are wrong\n", rank, wrong);
    else if (rank == 0)
        printf("%zu MiB both ways are right\n", bytes >> 20);
    free(out), free(in);
    MPI_Type_free(&every_second);
    MPI_Finalize();
    return wrong != 0;
}
