/* Ranks 0 and 1 wait, rank 2 computes, rank 3 sleeps, rank 4 polls; none of it ends. "slow": for 6 s, and a message a second goes. */
#include <mpi.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank;
static volatile double sum;

static __attribute__((noinline)) void compute(void) {
    for (;;) sum = sum * 1.0001 + 1;
}

static __attribute__((noinline)) void sleep_on(void) {
    for (;;) sleep(1000);
}

static __attribute__((noinline)) void poll_on(void) {
    for (int found = 0;;) MPI_Iprobe(0, 77, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void slow(void) {
    for (int turn = 0; turn < 6; turn++) {
        if (rank == 0) {
            sleep(1);
            MPI_Send(&turn, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Recv(&turn, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && !strcmp(argv[1], "slow")) {
        slow();
    } else {
        if (rank == 2) compute();
        if (rank == 3) sleep_on();
        if (rank == 4) poll_on();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
