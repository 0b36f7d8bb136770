/* Several nonblocking collectives under way, of which now one is waited for alone, now all. */
#include <mpi.h>
int main(void) {
    MPI_Init(NULL, NULL);
    int failed = 0, rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 40; round++) {
        int one = rank + round, sum = 0, from = round;
        MPI_Request q[3];
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q[0]);
        MPI_Ibarrier(MPI_COMM_WORLD, &q[1]);
        MPI_Ibcast(&from, 1, MPI_INT, round % size, MPI_COMM_WORLD, &q[2]);
        if (round % 2) MPI_Wait(&q[round % 3], MPI_STATUS_IGNORE);
        MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
        failed |= sum != size * (size - 1) / 2 + size * round || from != round;
    }
    MPI_Finalize();
    return failed;
}
