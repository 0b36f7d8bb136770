/* A copy callback that fails on one rank: its MPI_Comm_idup fails, and the others' complete. (The real libraries of Debian 12 leave
 * the others waiting.) */
#include "t.h"
static int failing(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag) {
    (void)c, (void)key;
    *flag = 1;
    *(void **)out = in;
    return *(int *)extra == t_rank ? 77 : MPI_SUCCESS;
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int key, victim, flag, *value;
    MPI_Comm base, made;
    MPI_Request q;
    MPI_Comm_create_keyval(failing, MPI_COMM_NULL_DELETE_FN, &key, &victim);
    MPI_Comm_dup(MPI_COMM_WORLD, &base);
    MPI_Comm_set_errhandler(base, MPI_ERRORS_RETURN);
    MPI_Comm_set_attr(base, key, &key);
    for (victim = 0; victim < t_size; victim++) {
        made = MPI_COMM_SELF, q = MPI_REQUEST_NULL;
        if (t_rank == victim) {
            EQ(MPI_Comm_idup(base, &made, &q), 77);
            OK(made == MPI_COMM_NULL && q == MPI_REQUEST_NULL);
        } else {
            EQ(MPI_Comm_idup(base, &made, &q), MPI_SUCCESS);
            EQ(MPI_Wait(&q, MPI_STATUS_IGNORE), MPI_SUCCESS);
            MPI_Comm_get_attr(made, key, &value, &flag);
            OK(flag && value == &key);
            /* Those that have it can use it. */
            int next = (t_rank + 1) % t_size, previous = (t_rank + t_size - 1) % t_size, got = -1;
            if (next == victim) next = (next + 1) % t_size;
            if (previous == victim) previous = (previous + t_size - 1) % t_size;
            MPI_Sendrecv(&t_rank, 1, MPI_INT, next, 3, &got, 1, MPI_INT, previous, 3, made, MPI_STATUS_IGNORE);
            EQ(got, previous);
        }
    }
    int sum = -1;
    MPI_Allreduce(&t_rank, &sum, 1, MPI_INT, MPI_SUM, base);
    EQ(sum, t_size * (t_size - 1) / 2);
    return t_end();
}
