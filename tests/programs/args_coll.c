/* Collectives: each wrong argument and its class; zero counts with null buffers; MPI_IN_PLACE where it may not be; intercommunicators where
 * they may not be. Blocking and nonblocking. */
#include "args.h"
enum { MOST = 16 };
static int in[4 * MOST], out[4 * MOST], ones[MOST], at[MOST], wrong[MOST], zeros[MOST];
static MPI_Datatype types[MOST], uncommitted, no_types[MOST];

static void roots(MPI_Comm c) {
    PART("roots");
    int bad[] = {-1, t_size, -100};
    for (int i = 0; i < 3; i++) {
        int r = bad[i];
        IS(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, r, c));
        IS(MPI_ERR_ROOT, MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, r, c));
        IS(MPI_ERR_ROOT, MPI_Gatherv(in, 1, MPI_INT, out, ones, at, MPI_INT, r, c));
        IS(MPI_ERR_ROOT, MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, r, c));
        IS(MPI_ERR_ROOT, MPI_Scatterv(in, ones, at, MPI_INT, out, 1, MPI_INT, r, c));
        IS(MPI_ERR_ROOT, MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, r, c));
        MPI_Request q = MPI_REQUEST_NULL;
        IS(MPI_ERR_ROOT, MPI_Ibcast(in, 1, MPI_INT, r, c, &q));
        IS(MPI_ERR_ROOT, MPI_Igather(in, 1, MPI_INT, out, 1, MPI_INT, r, c, &q));
        IS(MPI_ERR_ROOT, MPI_Iscatterv(in, ones, at, MPI_INT, out, 1, MPI_INT, r, c, &q));
        IS(MPI_ERR_ROOT, MPI_Ireduce(in, out, 1, MPI_INT, MPI_SUM, r, c, &q));
    }
}

static void counts(MPI_Comm c) {
    PART("counts");
    MPI_Request q = MPI_REQUEST_NULL;
    ONLY(MPI_ERR_COUNT, MPI_Bcast(in, -1, MPI_INT, 0, c));
    ONLY(MPI_ERR_COUNT, MPI_Gather(in, -1, MPI_INT, out, -1, MPI_INT, 0, c));
    ONLY(MPI_ERR_COUNT, MPI_Scatter(in, -1, MPI_INT, out, -1, MPI_INT, 0, c));
    ONLY(MPI_ERR_COUNT, MPI_Allgather(in, -1, MPI_INT, out, 1, MPI_INT, c));
    ONLY(MPI_ERR_COUNT, MPI_Allgather(in, 1, MPI_INT, out, -1, MPI_INT, c));
    ONLY(MPI_ERR_COUNT, MPI_Allgatherv(in, 1, MPI_INT, out, wrong, at, MPI_INT, c));
    ONLY(MPI_ERR_COUNT, MPI_Alltoall(in, -1, MPI_INT, out, -1, MPI_INT, c));
    ONLY(MPI_ERR_COUNT, MPI_Alltoallv(in, wrong, at, MPI_INT, out, wrong, at, MPI_INT, c));
    ONLY(MPI_ERR_COUNT, MPI_Alltoallw(in, wrong, at, types, out, wrong, at, types, c));
    ONLY(MPI_ERR_COUNT, MPI_Reduce(in, out, -1, MPI_INT, MPI_SUM, 0, c));
    ONLY(MPI_ERR_COUNT, MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, c));
    ONLY(MPI_ERR_COUNT, MPI_Scan(in, out, -1, MPI_INT, MPI_SUM, c));
    ONLY(MPI_ERR_COUNT, MPI_Exscan(in, out, -1, MPI_INT, MPI_SUM, c));
    ONLY(MPI_ERR_COUNT, MPI_Reduce_scatter(in, out, wrong, MPI_INT, MPI_SUM, c));
    ONLY(MPI_ERR_COUNT, MPI_Reduce_scatter_block(in, out, -1, MPI_INT, MPI_SUM, c));
    ONLY(MPI_ERR_COUNT, MPI_Reduce_local(in, out, -1, MPI_INT, MPI_SUM));
    ONLY(MPI_ERR_COUNT, MPI_Ibcast(in, -1, MPI_INT, 0, c, &q));
    ONLY(MPI_ERR_COUNT, MPI_Iallreduce(in, out, -1, MPI_INT, MPI_SUM, c, &q));
    ONLY(MPI_ERR_COUNT, MPI_Iscan(in, out, -1, MPI_INT, MPI_SUM, c, &q));
    ONLY(MPI_ERR_COUNT, MPI_Ialltoallv(in, wrong, at, MPI_INT, out, wrong, at, MPI_INT, c, &q));
}

static void datatypes(MPI_Comm c) {
    PART("datatypes");
    MPI_Request q = MPI_REQUEST_NULL;
    MPI_Datatype bad[] = {MPI_DATATYPE_NULL, uncommitted};
    for (int i = 0; i < 2; i++) {
        MPI_Datatype t = bad[i];
        IS(MPI_ERR_TYPE, MPI_Bcast(in, 1, t, 0, c));
        ONLY(MPI_ERR_TYPE, MPI_Allgather(in, 1, t, out, 1, t, c));
        ONLY(MPI_ERR_TYPE, MPI_Allgatherv(in, 1, t, out, ones, at, t, c));
        ONLY(MPI_ERR_TYPE, MPI_Gather(in, 1, t, out, 1, t, 0, c));
        ONLY(MPI_ERR_TYPE, MPI_Scatter(in, 1, t, out, 1, t, 0, c));
        ONLY(MPI_ERR_TYPE, MPI_Alltoall(in, 1, t, out, 1, t, c));
        ONLY(MPI_ERR_TYPE, MPI_Alltoallv(in, ones, at, t, out, ones, at, t, c));
        ONLY(MPI_ERR_TYPE, MPI_Ibcast(in, 1, t, 0, c, &q));
        ONLY(MPI_ERR_TYPE, MPI_Ialltoall(in, 1, t, out, 1, t, c, &q));
    }
    ONLY(MPI_ERR_TYPE, MPI_Alltoallw(in, ones, at, no_types, out, ones, at, no_types, c));
    PART("operations");
    IS(MPI_ERR_OP, MPI_Reduce(in, out, 1, MPI_INT, MPI_OP_NULL, 0, c));
    IS(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, c));
    IS(MPI_ERR_OP, MPI_Scan(in, out, 1, MPI_INT, MPI_OP_NULL, c));
    IS(MPI_ERR_OP, MPI_Exscan(in, out, 1, MPI_INT, MPI_OP_NULL, c));
    IS(MPI_ERR_OP, MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_OP_NULL, c));
    IS(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, MPI_INT, MPI_OP_NULL));
    IS(MPI_ERR_OP, MPI_Iallreduce(in, out, 1, MPI_INT, MPI_OP_NULL, c, &q));
    IS(MPI_ERR_OP, MPI_Reduce(in, out, 1, MPI_DOUBLE, MPI_BXOR, 0, c));
    IS(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_INT, MPI_MINLOC, c));
    IS(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_2INT, MPI_SUM, c));
#ifndef OPEN_MPI /* whose MPI_BYTE is a number */
    IS(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_BYTE, MPI_SUM, c));
#endif
    ONLY(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_C_BOOL, MPI_SUM, c));
    ONLY(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_C_DOUBLE_COMPLEX, MPI_MAX, c));
    /* Only those of one-sided communication. */
    ONLY(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_INT, MPI_REPLACE, c));
    ONLY(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_INT, MPI_NO_OP, c));
}

static void nothing(MPI_Comm c) {
    PART("zero counts, null buffers");
    MPI_Request q[12];
    FINE(MPI_Bcast(NULL, 0, MPI_INT, 0, c));
    FINE(MPI_Gather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, c));
    FINE(MPI_Gatherv(NULL, 0, MPI_INT, NULL, zeros, zeros, MPI_INT, 0, c));
    FINE(MPI_Scatter(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, c));
    FINE(MPI_Scatterv(NULL, zeros, zeros, MPI_INT, NULL, 0, MPI_INT, 0, c));
    FINE(MPI_Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, c));
    FINE(MPI_Allgatherv(NULL, 0, MPI_INT, NULL, zeros, zeros, MPI_INT, c));
    FINE(MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, c));
    MUST(MPI_SUCCESS, MPI_Alltoallv(NULL, zeros, zeros, MPI_INT, NULL, zeros, zeros, MPI_INT, c));
    MUST(MPI_SUCCESS, MPI_Alltoallw(NULL, zeros, zeros, types, NULL, zeros, zeros, types, c));
    FINE(MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, 0, c));
    FINE(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, c));
    FINE(MPI_Scan(NULL, NULL, 0, MPI_INT, MPI_SUM, c));
    FINE(MPI_Exscan(NULL, NULL, 0, MPI_INT, MPI_SUM, c));
    FINE(MPI_Reduce_scatter(NULL, NULL, zeros, MPI_INT, MPI_SUM, c));
    FINE(MPI_Reduce_scatter_block(NULL, NULL, 0, MPI_INT, MPI_SUM, c));
    FINE(MPI_Ibcast(NULL, 0, MPI_INT, 0, c, &q[0]));
    FINE(MPI_Igather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, c, &q[1]));
    FINE(MPI_Iallgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, c, &q[2]));
    FINE(MPI_Ialltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, c, &q[3]));
    FINE(MPI_Ireduce(NULL, NULL, 0, MPI_INT, MPI_SUM, 0, c, &q[4]));
    FINE(MPI_Iallreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, c, &q[5]));
    FINE(MPI_Iscan(NULL, NULL, 0, MPI_INT, MPI_SUM, c, &q[6]));
    FINE(MPI_Ireduce_scatter(NULL, NULL, zeros, MPI_INT, MPI_SUM, c, &q[7]));
    FINE(MPI_Ireduce_scatter_block(NULL, NULL, 0, MPI_INT, MPI_SUM, c, &q[8]));
    q[9] = MPI_REQUEST_NULL; /* MPICH 4.0.2 takes two null buffers for one that is given twice */
    MUST(MPI_SUCCESS, MPI_Ialltoallv(NULL, zeros, zeros, MPI_INT, NULL, zeros, zeros, MPI_INT, c, &q[9]));
    FINE(MPI_Iscatter(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, c, &q[10]));
    FINE(MPI_Iexscan(NULL, NULL, 0, MPI_INT, MPI_SUM, c, &q[11]));
    FINE(MPI_Waitall(12, q, MPI_STATUSES_IGNORE));
    /* Elements without bytes. */
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    FINE(MPI_Bcast(in, 1000000000, empty, 0, c));
    FINE(MPI_Allgather(in, 7, empty, out, 7, empty, c));
    FINE(MPI_Alltoall(in, 7, empty, out, 7, empty, c));
    MPI_Type_free(&empty);
}

/* Only intracommunicators have an order of all ranks, and neighbours. */
static void between_groups(void) {
    if (t_size < 2) return;
    PART("intercommunicators");
    MPI_Comm half, inter;
    MPI_Request q = MPI_REQUEST_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, t_rank % 2, t_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - t_rank % 2, 5, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    IS(MPI_ERR_COMM, MPI_Scan(in, out, 1, MPI_INT, MPI_SUM, inter));
    IS(MPI_ERR_COMM, MPI_Exscan(in, out, 1, MPI_INT, MPI_SUM, inter));
    IS(MPI_ERR_COMM, MPI_Iscan(in, out, 1, MPI_INT, MPI_SUM, inter, &q));
    IS(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, 100, inter));
    IS(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, -100, inter));
    IS(MPI_ERR_ROOT, MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, 100, inter));
    /* Who has no part says MPI_PROC_NULL, and its other arguments are not looked at. */
    int root = t_rank % 2 ? 0 : t_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    int value = t_rank == 0 ? 42 : -1;
    if (root == MPI_PROC_NULL) FINE(MPI_Bcast(NULL, 0, MPI_INT, root, inter));
    else FINE(MPI_Bcast(&value, 1, MPI_INT, root, inter));
    EQ(value, t_rank % 2 || t_rank == 0 ? 42 : -1);
    FINE(MPI_Allreduce(&t_rank, &value, 1, MPI_INT, MPI_SUM, inter));
    int sum = 0;
    for (int r = 1 - t_rank % 2; r < t_size; r += 2) sum += r;
    EQ(value, sum);
    FINE(MPI_Barrier(inter));
    MPI_Comm_free(&inter), MPI_Comm_free(&half);
}

static void in_place(MPI_Comm c) {
    PART("MPI_IN_PLACE");
    int value = t_rank + 1, all[MOST], want = t_size * (t_size + 1) / 2;
    FINE(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, c)), EQ(value, want);
    value = t_rank + 1;
    if (t_rank == 0) FINE(MPI_Reduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, 0, c)), EQ(value, want);
    else FINE(MPI_Reduce(&value, NULL, 1, MPI_INT, MPI_SUM, 0, c));
    value = t_rank + 1;
    FINE(MPI_Scan(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, c)), EQ(value, (t_rank + 1) * (t_rank + 2) / 2);
    value = t_rank + 1;
    FINE(MPI_Exscan(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, c));
    EQ(value, t_rank ? t_rank * (t_rank + 1) / 2 : 1);
    for (int r = 0; r < t_size; r++) all[r] = r == t_rank ? r : -1;
    FINE(MPI_Allgather(MPI_IN_PLACE, 5, MPI_DATATYPE_NULL, all, 1, MPI_INT, c));
    for (int r = 0; r < t_size; r++) EQ(all[r], r);
    for (int r = 0; r < t_size; r++) all[r] = 100 * t_rank + r;
    FINE(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, c));
    for (int r = 0; r < t_size; r++) EQ(all[r], 100 * r + t_rank);
    for (int r = 0; r < t_size; r++) all[r] = 100 * t_rank + r;
    FINE(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, all, ones, at, MPI_INT, c));
    for (int r = 0; r < t_size; r++) EQ(all[r], 100 * r + t_rank);
    for (int r = 0; r < t_size; r++) all[r] = r + t_rank;
    FINE(MPI_Reduce_scatter_block(MPI_IN_PLACE, all, 1, MPI_INT, MPI_SUM, c));
    EQ(all[0], t_size * t_rank + t_size * (t_size - 1) / 2);
    /* A collective has no place in the receive buffer's role. */
    ONLY(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, c));
    ONLY(MPI_ERR_BUFFER, MPI_Allreduce(&value, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, c));
    ONLY(MPI_ERR_BUFFER, MPI_Allgather(&value, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, c));
    ONLY(MPI_ERR_BUFFER, MPI_Alltoall(&value, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, c));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < MOST; i++) ones[i] = 1, at[i] = i, wrong[i] = -1, types[i] = MPI_INT, no_types[i] = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    roots(c), counts(c), datatypes(c), nothing(c), between_groups(), in_place(c);
    MPI_Type_free(&uncommitted);
    MPI_Comm_free(&c);
    return t_end();
}
