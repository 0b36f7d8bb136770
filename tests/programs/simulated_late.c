/* simulated_late [WHO MS]: rank WHO (-1: none) is late by MS milliseconds of real time, the next one by half of that, before they have told how far they are in virtual
 * time, or after. So what the others wait for is there before they wait, or not. What they see follows from virtual time alone. */
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C"
#endif
int MPIX_Compute(double seconds) __attribute__((weak));

enum { MOST = 64, ROUNDS = 6 };

static void compute(double seconds)
{
    if (MPIX_Compute)
        MPIX_Compute(seconds);
}

/* Real time, which is no virtual time: nothing comes through this pipe. Whoever waits in the kernel lets others have its core. */
static void wait_for_real(int ms)
{
    int ends[2];
    if (ms == 0 || pipe(ends) != 0)
        return;
    struct pollfd out = {ends[0], POLLIN, 0};
    poll(&out, 1, ms);
    close(ends[0]), close(ends[1]);
}

int main(int argc, char **argv)
{
    int rank, size, in[MOST], all[MOST], index, data = 0;
    int who = argc > 2 ? atoi(argv[1]) : -1, ms = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Request requests[MOST], mine;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < ROUNDS; round++) {
        double now = MPI_Wtime();
        MPI_Allreduce(MPI_IN_PLACE, &now, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        /* All begin together. */
        compute(now + 100e-6 - MPI_Wtime());
        int late = rank == who ? ms : who >= 0 && rank == (who + 1) % size ? ms / 2 : 0;
        if (round % 2 == 0)
            wait_for_real(late);
        compute(rank == 0 ? 10e-6 : rank == 1 || rank == 2 ? 30e-6 : 0);
        MPI_Isend(&data, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &mine);
        if (round % 2 == 1)
            wait_for_real(late);
        if (round < 4) {
            /* Most of it has come when rank 0 comes; the rest comes later. */
            MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
        } else if (rank == 0) {
            for (int i = 1; i < size; i++)
                MPI_Irecv(&in[i], 1, MPI_INT, i, 2, MPI_COMM_WORLD, &requests[i - 1]);
            for (int i = 1; i < size; i++) {
                MPI_Waitany(size - 1, requests, &index, MPI_STATUS_IGNORE);
                printf("[%d] round %d: rank %d at %.12f\n", rank, round, in[index + 1], MPI_Wtime());
            }
        } else {
            MPI_Send(&rank, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        }
        MPI_Recv(&data, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&mine, MPI_STATUS_IGNORE);
        printf("[%d] round %d at %.12f\n", rank, round, MPI_Wtime());
    }
    MPI_Finalize();
    return 0;
}
