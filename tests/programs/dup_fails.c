/* A copy callback that fails: MPI_Comm_dup and its kin return its code, and no communicator. */
#include "t.h"
static int failing(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag) {
    (void)c, (void)key, (void)extra, (void)in, (void)out;
    *flag = 1;
    return 77;
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int key;
    MPI_Comm base, made;
    MPI_Request q = MPI_REQUEST_NULL;
    MPI_Comm_create_keyval(failing, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &base);
    MPI_Comm_set_errhandler(base, MPI_ERRORS_RETURN);
    MPI_Comm_set_attr(base, key, &key);
    made = MPI_COMM_SELF;
    EQ(MPI_Comm_dup(base, &made), 77);
    OK(made == MPI_COMM_NULL);
    made = MPI_COMM_SELF;
    EQ(MPI_Comm_dup_with_info(base, MPI_INFO_NULL, &made), 77);
    OK(made == MPI_COMM_NULL);
    made = MPI_COMM_SELF;
    EQ(MPI_Comm_idup(base, &made, &q), 77);
    OK(made == MPI_COMM_NULL && q == MPI_REQUEST_NULL);
    /* The original is as good as before. */
    int sum = -1;
    MPI_Allreduce(&t_rank, &sum, 1, MPI_INT, MPI_SUM, base);
    EQ(sum, t_size * (t_size - 1) / 2);
    MPI_Comm_delete_attr(base, key);
    MPI_Comm_dup(base, &made);
    OK(made != MPI_COMM_NULL);
    MPI_Comm_free(&made);
    MPI_Comm_free(&base);
    MPI_Comm_free_keyval(&key);
    say("no duplicate");
    return t_end();
}
