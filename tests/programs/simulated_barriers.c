/* Barriers to which ranks come at different times, and when each leaves them: the same whether the simulation plays them or their messages are sent. Messages are
 * under way meanwhile, some of which a rank has to answer while it is in a barrier, on several communicators. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C"
#endif
int MPIX_Compute(double seconds) __attribute__((weak));

enum { ROUNDS = 20, BYTES = 100000 };
static unsigned long long state;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % below;
}

int main(int argc, char **argv)
{
    int rank, size, small = 0;
    MPI_Comm half, twin;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    state = 0x9e3779b97f4a7c15ULL * (rank + 1);
    char *out = calloc(1, BYTES), *in = calloc(1, BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[4];
        int to = (rank + 1 + round) % size, from = (rank + size * 2 - 1 - round) % size;
        if (MPIX_Compute)
            MPIX_Compute(draw(5) * 2e-6);
        MPI_Irecv(in, BYTES, MPI_CHAR, from, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&small, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[1]);
        /* Large ones ask for an answer, and so do these. */
        MPI_Isend(out, round % 3 ? BYTES : 1, MPI_CHAR, to, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Issend(&rank, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[3]);
        MPI_Barrier(round % 4 == 1 ? half : round % 4 == 2 ? twin : MPI_COMM_WORLD);
        double left = MPI_Wtime();
        if (round % 4 == 3)
            MPI_Barrier(twin);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        printf("[%d] round %d: left at %.12f, all by %.12f\n", rank, round, left, MPI_Wtime());
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&twin);
    free(in), free(out);
    MPI_Finalize();
    return 0;
}
