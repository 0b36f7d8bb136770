/* More than 2^31 of everything: bytes of a message, counts of types without bytes, displacements, extents; what int results say then. */
#include "t.h"
enum { BLOCK = 1 << 16, BLOCKS = 36000 }; /* 2.36e9 bytes, of one block of memory */

static void message(void) {
    PART("message");
    MPI_Datatype block, same;
    MPI_Status s;
    MPI_Count size, wide, lb, extent;
    int n;
    unsigned char *out = malloc(BLOCK), *in = calloc(1, BLOCK);
    t_fill(out, BLOCK, 3, 4);
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, 0, &same);
    MPI_Type_commit(&same);
    MPI_Request q;
    MPI_Irecv(in, BLOCKS, same, 0, 1, MPI_COMM_SELF, &q);
    MPI_Send(out, BLOCKS, same, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&q, &s);
    EQ(t_wrong(in, BLOCK, 3, 4), -1);
    MPI_Get_count(&s, same, &n), EQ(n, BLOCKS);
    MPI_Get_count(&s, MPI_BYTE, &n), EQ(n, MPI_UNDEFINED);
    MPI_Get_elements(&s, same, &n), STRICT(n == MPI_UNDEFINED);
    MPI_Get_elements_x(&s, same, &wide), EQ(wide, (MPI_Count)BLOCK * BLOCKS);
    MPI_Get_count(&s, MPI_DOUBLE, &n), EQ(n, BLOCK / 8 * BLOCKS);
    MPI_Type_free(&same);
    MPI_Type_contiguous(BLOCKS, block, &same);
    MPI_Type_size(same, &n), EQ(n, MPI_UNDEFINED);
    MPI_Type_size_x(same, &size), EQ(size, (MPI_Count)BLOCK * BLOCKS);
    MPI_Type_get_extent_x(same, &lb, &extent), OK(lb == 0 && extent == size);
    MPI_Type_free(&same), MPI_Type_free(&block);
    free(out), free(in);
    MPI_Status_set_elements_x(&s, MPI_INT, (MPI_Count)1 << 40);
    MPI_Get_elements_x(&s, MPI_INT, &wide), EQ(wide, (MPI_Count)1 << 40);
    MPI_Get_count(&s, MPI_INT, &n), EQ(n, MPI_UNDEFINED);
    MPI_Get_elements(&s, MPI_INT, &n), EQ(n, MPI_UNDEFINED);
}

#ifndef OPEN_MPI
static void counts(void) {
    PART("counts");
    MPI_Count many = (MPI_Count)5 << 32, n, sizes[16], lb, extent;
    MPI_Aint far[16];
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Datatype nothing, t;
    MPI_Status s;
    MPI_Request q;
    int small, in[16], out[16];
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    EQ(MPI_Bcast_c(in, many, nothing, 0, w), MPI_SUCCESS);
    EQ(MPI_Allgather_c(in, many, nothing, out, many, nothing, w), MPI_SUCCESS);
    EQ(MPI_Alltoall_c(in, many, nothing, out, many, nothing, w), MPI_SUCCESS);
    EQ(MPI_Sendrecv_c(in, many, nothing, t_rank, 0, out, many, nothing, t_rank, 0, w, &s), MPI_SUCCESS);
    MPI_Get_elements_c(&s, nothing, &n), EQ(n, 0);
    EQ(MPI_Isend_c(in, many, nothing, t_rank, 1, w, &q), MPI_SUCCESS);
    EQ(MPI_Recv_c(out, many + 1, nothing, t_rank, 1, w, &s), MPI_SUCCESS);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    /* One element each, far away where there is none. */
    for (int r = 0; r < t_size; r++) sizes[r] = r == (t_rank + 1) % t_size, far[r] = sizes[r] ? r : (MPI_Aint)1 << 40, out[r] = 100 * t_rank + r;
    MPI_Count back[16];
    MPI_Aint at[16];
    for (int r = 0; r < t_size; r++) back[r] = r == (t_rank + t_size - 1) % t_size, at[r] = back[r] ? r : (MPI_Aint)1 << 41, in[r] = -1;
    EQ(MPI_Alltoallv_c(out, sizes, far, MPI_INT, in, back, at, MPI_INT, w), MPI_SUCCESS);
    int last = (t_rank + t_size - 1) % t_size;
    EQ(in[last], 100 * last + t_rank);
    MPI_Type_free(&nothing);

    PART("types");
    MPI_Type_vector_c(many, 1, 2, MPI_CHAR, &t);
    MPI_Type_size_c(t, &n), EQ(n, many);
    MPI_Type_get_extent_c(t, &lb, &extent), OK(lb == 0 && extent == 2 * many - 1);
    MPI_Type_size(t, &small), EQ(small, MPI_UNDEFINED);
    MPI_Type_free(&t);
    MPI_Count lengths[2] = {1, many}, places[2] = {0, many};
    MPI_Type_indexed_c(2, lengths, places, MPI_SHORT, &t);
    MPI_Type_size_c(t, &n), EQ(n, 2 * (many + 1));
    MPI_Type_get_true_extent_c(t, &lb, &extent), OK(lb == 0 && extent == 4 * many);
    MPI_Count ints, addrs, larges, types;
    int combiner;
    MPI_Type_get_envelope_c(t, &ints, &addrs, &larges, &types, &combiner);
    OK(ints == 0 && larges == 5 && types == 1 && combiner == MPI_COMBINER_INDEXED);
    STRICT(MPI_Type_get_envelope(t, &small, &small, &small, &small) != MPI_SUCCESS); /* no room in ints */
    MPI_Type_free(&t);
    MPI_Pack_size_c(many, MPI_DOUBLE, w, &n), OK(n >= 8 * many);
    MPI_Pack_external_size_c("external32", many, MPI_INT, &n), EQ(n, 4 * many);
    EQ(MPI_Pack_size(2000000000, MPI_DOUBLE, w, &small) == MPI_SUCCESS && small > 0 && small != MPI_UNDEFINED, 0);
    /* A subarray of an array that no memory holds. */
    MPI_Count whole[2] = {many, many / 4096}, part[2] = {1, 3}, start[2] = {0, many / 8192};
    MPI_Type_create_subarray_c(2, whole, part, start, MPI_ORDER_C, MPI_CHAR, &t);
    MPI_Type_size_c(t, &n), EQ(n, 3);
    MPI_Type_get_true_extent_c(t, &lb, &extent), OK(lb == many / 8192 && extent == 3);
    MPI_Type_free(&t);
}
#endif

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (t_rank == 0) message();
#ifndef OPEN_MPI
    counts();
#endif
    return t_end();
}
