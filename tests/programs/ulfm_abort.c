/* MPI_Abort, and MPI_ERRORS_ABORT, end the ranks of their communicator; the others go on. argv[1] is whose: "odd" ranks', the
 * last rank's "self", of odd ranks and rank 0 as an "inter"communicator, by an "error", of a "spawned" world, or of "all". */
#include "ulfm.h"

static int rank, size;

/* Wait for the end: some in MPI, some outside. */
static void wait_for_it(MPI_Comm comm)
{
    int value;
    if (rank % 4 == 3)
        for (volatile unsigned long i = 0;; i++) {
        }
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 77, comm, MPI_STATUS_IGNORE);
    for (;;)
        pause();
}

/* Who is left learns of it, goes on without the others, and says so. */
static void survive(MPI_Comm comm, int victim, int dead, const char *who)
{
    MPI_Comm left;
    int value, n, one = 1, sum = 0;
    EXPECT(MPI_Recv(&value, 1, MPI_INT, victim, 1, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    EXPECT(MPIX_Comm_shrink(comm, &left), MPI_SUCCESS);
    MPI_Comm_size(left, &n);
    /* The others may still be about to die. */
    while (n > size - dead) {
        MPI_Comm next;
        EXPECT(MPIX_Comm_shrink(left, &next), MPI_SUCCESS);
        MPI_Comm_free(&left);
        left = next;
        MPI_Comm_size(left, &n);
    }
    EXPECT(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left), MPI_SUCCESS);
    CHECK(sum == size - dead);
    MPI_Comm_free(&left);
    printf("%s %d goes on\n", who, rank);
    fflush(stdout);
}

static void spawned(const char *program)
{
    MPI_Comm inter;
    char *args[] = {"spawned", NULL};
    int value;
    MPI_Comm_get_parent(&inter);
    if (inter != MPI_COMM_NULL) {
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        MPI_Barrier(inter);
        if (rank == 1)
            MPI_Abort(MPI_COMM_WORLD, 8);
        wait_for_it(MPI_COMM_WORLD);
    }
    MPI_Comm_spawn(program, args, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Barrier(inter);
    for (int child = 0; child < 3; child++)
        EXPECT(MPI_Recv(&value, 1, MPI_INT, child, 1, inter, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    printf("parent %d goes on\n", rank);
    fflush(stdout);
    MPI_Comm_free(&inter);
}

int main(int argc, char **argv)
{
    const char *story = argc > 1 ? argv[1] : "odd";
    MPI_Comm half, inter = MPI_COMM_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!strcmp(story, "spawned")) {
        spawned(argv[0]);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    if (!strcmp(story, "odd")) {
        if (rank == 1)
            MPI_Abort(half, 8);
        if (rank % 2)
            wait_for_it(half);
        survive(MPI_COMM_WORLD, 1, size / 2, "survivor");
    } else if (!strcmp(story, "self")) {
        if (rank == size - 1)
            MPI_Abort(MPI_COMM_SELF, 8);
        survive(MPI_COMM_WORLD, size - 1, 1, "survivor");
    } else if (!strcmp(story, "inter")) {
        if (rank == 0)
            MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1, 0, &inter);
        if (rank % 2)
            MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 0, 0, &inter);
        if (rank == 0)
            MPI_Abort(inter, 8);
        if (rank % 2)
            wait_for_it(half);
        survive(MPI_COMM_WORLD, 0, 1 + size / 2, "survivor");
    } else if (!strcmp(story, "error")) {
#ifdef MPI_ERRORS_ABORT
        MPI_Comm_set_errhandler(half, MPI_ERRORS_ABORT);
#endif
        if (rank == 1)
            MPI_Send(NULL, 0, MPI_INT, size, 0, half);
        if (rank % 2)
            wait_for_it(half);
        survive(MPI_COMM_WORLD, 1, size / 2, "survivor");
    } else {
        if (rank == size - 1)
            MPI_Abort(MPI_COMM_WORLD, 8);
        wait_for_it(half);
    }
    MPI_Finalize();
    return 0;
}
