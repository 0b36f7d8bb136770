/* Rank 1 dies; the others make a communicator without it and go on. Needs vmpirun --enable-recovery. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <vmpi.h>

int main(int argc, char **argv)
{
    int rank, size, class;
    MPI_Comm survivors;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1)
        raise(SIGKILL);
    int error = MPI_Barrier(MPI_COMM_WORLD);
    MPI_Error_class(error, &class);
    if (class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED)
        MPIX_Comm_revoke(MPI_COMM_WORLD); /* whoever has not noticed yet */
    MPIX_Comm_shrink(MPI_COMM_WORLD, &survivors);
    MPI_Comm_rank(survivors, &rank);
    MPI_Comm_size(survivors, &size);
    MPI_Barrier(survivors);
    if (rank == 0)
        printf("survive: %d ranks go on\n", size);
    MPI_Comm_free(&survivors);
    MPI_Finalize();
    return 0;
}
