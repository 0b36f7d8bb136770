#include <stdio.h>
#include <vmpi.h>

int main(int argc, char **argv) {
    int me, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0) printf("C: %d, clock %d\n", sum, MPIX_Rtime() > 0);
    return MPI_Finalize();
}
