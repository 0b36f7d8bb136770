/* A nonblocking collective that one rank starts before a barrier and the others after it: not in the standard's order, but
 * both real MPIs count blocking and nonblocking collectives apart, and mpi4py's MPIX_Comm_iagree relies on it. */
#include "t.h"
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    for (int root = 0; root < t_size; root++) {
        MPI_Request request;
        int flag = 0, mine = t_rank == root ? 11 : 13, all = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        if (t_rank == root) {
            MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_BAND, MPI_COMM_WORLD, &request);
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            OK(!flag || t_size == 1);
            MPI_Barrier(MPI_COMM_WORLD);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_BAND, MPI_COMM_WORLD, &request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EQ(all, t_size == 1 ? 11 : 9);
    }
    say("two orders");
    return t_end();
}
