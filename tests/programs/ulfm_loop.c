/* The classic loop: an iteration over data spread over the ranks, in which ranks die now and then; who is left notices, revokes, shrinks,
 * shares the work anew and goes on. argv[1]: victims, argv[2]: bytes that each step exchanges. The answer is the same as without deaths. */
#include "ulfm.h"

enum { WORK = 840, STEPS = 60 };

/* Sum over the work of this rank in step `step`. */
static double compute(int step, int rank, int size)
{
    double sum = 0;
    for (int i = rank; i < WORK; i += size)
        sum += (double)(i + 1) * (step + 1);
    return sum;
}

int main(int argc, char **argv)
{
    MPI_Comm world, comm;
    int first, size, rank, original;
    int victims = argc > 1 ? atoi(argv[1]) : 1, bytes = argc > 2 ? atoi(argv[2]) : 8;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &original);
    MPI_Comm_size(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    comm = world;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int count = bytes / 8;
    double *in = malloc(bytes), *out = malloc(bytes), total = 0;
    int step = 0, repairs = 0;
    while (step < STEPS) {
        /* Rank k of the first `victims` after rank 0 dies in step 10 k + 3, the last two of them at once. */
        for (int k = 1; k <= victims; k++) {
            int when = k == victims && victims > 1 ? 10 * (k - 1) + 3 : 10 * k + 3;
            if (original == k && step == when)
                die();
        }
        for (int i = 0; i < count; i++)
            in[i] = compute(step, rank, size) + i;
        int code = MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
        int good = code == MPI_SUCCESS;
        if (!good) {
            int class = class_of(code);
            CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
            MPIX_Comm_revoke(comm);
        }
        /* All or none of them take the step. */
        code = MPIX_Comm_agree(comm, &good);
        if (good) {
            for (int i = 0; i < count; i++)
                CHECK(out[i] == (double)(step + 1) * WORK * (WORK + 1) / 2 + (double)i * size);
            total += out[0];
            step++;
        }
        if (code != MPI_SUCCESS || !good) {
            MPI_Comm left;
            EXPECT(MPIX_Comm_revoke(comm), MPI_SUCCESS);
            EXPECT(MPIX_Comm_shrink(comm, &left), MPI_SUCCESS);
            EXPECT(MPI_Comm_free(&comm), MPI_SUCCESS);
            comm = left;
            MPI_Comm_rank(comm, &rank);
            MPI_Comm_size(comm, &size);
            repairs++;
            CHECK(repairs <= victims);
        }
    }
    CHECK(size == first - victims);
    CHECK(total == (double)STEPS * (STEPS + 1) / 2 * WORK * (WORK + 1) / 2);
    if (rank == 0)
        printf("%d of %d ranks are left, total %.0f\n", size, first, total);
    fflush(stdout);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
