/* A spawned rank dies: both groups of the intercommunicator learn of it, and go on with those who are left. */
#include "ulfm.h"

enum { CHILDREN = 3 };

int main(int argc, char **argv)
{
    MPI_Comm parent, inter, left, merged;
    int rank, size, value = -1, remote, sum = 0, one = 1, flag;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int child = parent != MPI_COMM_NULL;
    if (!child)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    else
        inter = parent;
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    /* Who comes out late may hear of the death first. */
    int code = MPI_Barrier(inter);
    CHECK(code == MPI_SUCCESS || class_of(code) == MPIX_ERR_PROC_FAILED);
    if (child && rank == 1)
        die();
    EXPECT(MPI_Barrier(inter), MPIX_ERR_PROC_FAILED);
    if (!child) {
        EXPECT(MPI_Recv(&value, 1, MPI_INT, 1, 1, inter, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
        EXPECT(MPI_Send(&value, 1, MPI_INT, 1, 1, inter), MPIX_ERR_PROC_FAILED);
    }
    /* Each group learns what the other gave. */
    flag = child ? 12 : 10;
    EXPECT(MPIX_Comm_agree(inter, &flag), MPIX_ERR_PROC_FAILED);
    CHECK(flag == (child ? 10 : 12));
    EXPECT(MPIX_Comm_revoke(inter), MPI_SUCCESS);
    EXPECT(MPIX_Comm_shrink(inter, &left), MPI_SUCCESS);
    MPI_Comm_remote_size(left, &remote);
    CHECK(child || remote == CHILDREN - 1);
    EXPECT(MPI_Intercomm_merge(left, child, &merged), MPI_SUCCESS);
    EXPECT(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged), MPI_SUCCESS);
    CHECK(child || sum == size + CHILDREN - 1);
    MPI_Comm_free(&merged);
    EXPECT(MPI_Comm_disconnect(&left), MPI_SUCCESS);
    EXPECT(MPI_Comm_free(&inter), MPI_SUCCESS);
    printf("%s %d goes on\n", child ? "child" : "parent", rank);
    fflush(stdout);
    EXPECT(MPI_Finalize(), MPI_SUCCESS);
    return 0;
}
