/* Datatypes: each wrong argument of each constructor and its class; empty types; what may not be freed; packing; names and attributes. */
#include "args.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(w, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Datatype t = MPI_DATATYPE_NULL, u, two[2] = {MPI_INT, MPI_DOUBLE}, none[2] = {MPI_INT, MPI_DATATYPE_NULL};
    int one[2] = {1, 1}, minus[2] = {1, -1}, at[2] = {0, 4}, n, position, zero[2] = {0, 0};
    MPI_Aint far[2] = {0, 16}, lb, extent, size;

    PART("constructors");
    IS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &t));
    IS(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t));
    IS(MPI_ERR_COUNT, MPI_Type_vector(-1, 1, 1, MPI_INT, &t));
    EITHER(MPI_ERR_ARG, MPI_ERR_COUNT, MPI_Type_vector(1, -1, 1, MPI_INT, &t));
    IS(MPI_ERR_TYPE, MPI_Type_vector(1, 1, 1, MPI_DATATYPE_NULL, &t));
    IS(MPI_ERR_COUNT, MPI_Type_create_hvector(-1, 1, 1, MPI_INT, &t));
    EITHER(MPI_ERR_ARG, MPI_ERR_COUNT, MPI_Type_create_hvector(1, -1, 1, MPI_INT, &t));
    IS(MPI_ERR_COUNT, MPI_Type_indexed(-1, one, at, MPI_INT, &t));
    EITHER(MPI_ERR_ARG, MPI_ERR_COUNT, MPI_Type_indexed(2, minus, at, MPI_INT, &t));
    IS(MPI_ERR_TYPE, MPI_Type_indexed(2, one, at, MPI_DATATYPE_NULL, &t));
    IS(MPI_ERR_COUNT, MPI_Type_create_hindexed(-1, one, far, MPI_INT, &t));
    EITHER(MPI_ERR_ARG, MPI_ERR_COUNT, MPI_Type_create_hindexed(2, minus, far, MPI_INT, &t));
    IS(MPI_ERR_COUNT, MPI_Type_create_indexed_block(-1, 1, at, MPI_INT, &t));
    EITHER(MPI_ERR_ARG, MPI_ERR_COUNT, MPI_Type_create_indexed_block(2, -1, at, MPI_INT, &t));
    IS(MPI_ERR_COUNT, MPI_Type_create_hindexed_block(-1, 1, far, MPI_INT, &t));
    IS(MPI_ERR_COUNT, MPI_Type_create_struct(-1, one, far, two, &t));
    EITHER(MPI_ERR_ARG, MPI_ERR_COUNT, MPI_Type_create_struct(2, minus, far, two, &t));
    IS(MPI_ERR_TYPE, MPI_Type_create_struct(2, one, far, none, &t));
    IS(MPI_ERR_TYPE, MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 8, &t));
    IS(MPI_ERR_TYPE, MPI_Type_dup(MPI_DATATYPE_NULL, &t));
    int sizes[2] = {4, 6}, part[2] = {2, 3}, start[2] = {1, 2}, over[2] = {3, 4}, big[2] = {5, 3}, below[2] = {-1, 0};
    MUST(MPI_ERR_ARG, MPI_Type_create_subarray(2, sizes, part, over, MPI_ORDER_C, MPI_INT, &t));
    MUST(MPI_ERR_ARG, MPI_Type_create_subarray(2, sizes, big, start, MPI_ORDER_C, MPI_INT, &t));
    MUST(MPI_ERR_ARG, MPI_Type_create_subarray(2, sizes, part, below, MPI_ORDER_C, MPI_INT, &t));
    IS(MPI_ERR_ARG, MPI_Type_create_subarray(2, sizes, part, start, 12345, MPI_INT, &t));
    MUST(MPI_ERR_ARG, MPI_Type_create_subarray(0, sizes, part, start, MPI_ORDER_C, MPI_INT, &t));
    IS(MPI_ERR_TYPE, MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_DATATYPE_NULL, &t));
    int block[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arg[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 2};
    EITHER(MPI_ERR_ARG, MPI_ERR_RANK, MPI_Type_create_darray(4, 9, 2, sizes, block, arg, grid, MPI_ORDER_C, MPI_INT, &t));
    ONLY(MPI_ERR_ARG, MPI_Type_create_darray(5, 0, 2, sizes, block, arg, grid, MPI_ORDER_C, MPI_INT, &t));
    IS(MPI_ERR_TYPE, MPI_Type_create_darray(4, 0, 2, sizes, block, arg, grid, MPI_ORDER_C, MPI_DATATYPE_NULL, &t));
    OK(MPI_Type_create_f90_integer(50, &t) != MPI_SUCCESS);
    OK(MPI_Type_create_f90_real(200, 10000, &t) != MPI_SUCCESS);
    OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &t) != MPI_SUCCESS);

    PART("of nothing");
    MPI_Datatype kinds[7];
    FINE(MPI_Type_contiguous(0, MPI_INT, &kinds[0]));
    FINE(MPI_Type_vector(0, 5, 5, MPI_INT, &kinds[1]));
    FINE(MPI_Type_vector(5, 0, 5, MPI_INT, &kinds[2]));
    FINE(MPI_Type_indexed(0, NULL, NULL, MPI_INT, &kinds[3]));
    FINE(MPI_Type_indexed(2, zero, at, MPI_INT, &kinds[4]));
    FINE(MPI_Type_create_struct(0, NULL, NULL, NULL, &kinds[5]));
    FINE(MPI_Type_create_hindexed(2, zero, far, MPI_INT, &kinds[6]));
    for (int i = 0; i < 7; i++) {
        char out[8];
        FINE(MPI_Type_commit(&kinds[i]));
        FINE(MPI_Type_size(kinds[i], &n)), EQ(n, 0);
        FINE(MPI_Type_get_extent(kinds[i], &lb, &extent)), STRICT(extent == 0);
        FINE(MPI_Sendrecv(NULL, 3, kinds[i], t_rank, i, NULL, 3, kinds[i], t_rank, i, w, MPI_STATUS_IGNORE));
        position = 0;
        FINE(MPI_Pack(&n, 4, kinds[i], out, 8, &position, w)), EQ(position, 0);
        FINE(MPI_Type_free(&kinds[i]));
        OK(kinds[i] == MPI_DATATYPE_NULL);
    }

    PART("queries");
    IS(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &n));
    IS(MPI_ERR_TYPE, MPI_Type_get_extent(MPI_DATATYPE_NULL, &lb, &extent));
    IS(MPI_ERR_TYPE, MPI_Type_get_true_extent(MPI_DATATYPE_NULL, &lb, &extent));
    IS(MPI_ERR_TYPE, MPI_Type_commit(&(MPI_Datatype){MPI_DATATYPE_NULL}));
    IS(MPI_ERR_TYPE, MPI_Type_free(&(MPI_Datatype){MPI_DATATYPE_NULL}));
    EITHER(MPI_ERR_TYPE, MPI_ERR_ARG, MPI_Type_free(&(MPI_Datatype){MPI_DOUBLE}));
    FINE(MPI_Type_commit(&(MPI_Datatype){MPI_DOUBLE}));
    int ints[10];
    MPI_Aint addrs[10];
    MPI_Datatype types[10];
    OK(MPI_Type_get_contents(MPI_INT, 0, 0, 0, ints, addrs, types) != MPI_SUCCESS);
    MPI_Type_vector(3, 2, 4, MPI_INT, &t);
    MUST(MPI_ERR_ARG, MPI_Type_get_contents(t, 2, 0, 1, ints, addrs, types));
    FINE(MPI_Type_get_contents(t, 3, 0, 1, ints, addrs, types));
    OK(ints[0] == 3 && ints[1] == 2 && ints[2] == 4 && types[0] == MPI_INT);
    /* An uncommitted type may be used in constructors, and in queries. */
    FINE(MPI_Type_dup(t, &u)), FINE(MPI_Type_free(&u));
    FINE(MPI_Type_size(t, &n)), EQ(n, 24);

    PART("packing");
    int from[12] = {0}, to[12];
    position = 0;
    IS(MPI_ERR_TYPE, MPI_Pack(from, 1, t, to, sizeof to, &position, w));
    MPI_Type_commit(&t);
    IS(MPI_ERR_COUNT, MPI_Pack(from, -1, MPI_INT, to, sizeof to, &position, w));
    IS(MPI_ERR_TYPE, MPI_Pack(from, 1, MPI_DATATYPE_NULL, to, sizeof to, &position, w));
    IS(MPI_ERR_COMM, MPI_Pack(from, 1, MPI_INT, to, sizeof to, &position, MPI_COMM_NULL));
    OK(!VMPI || MPI_Pack(from, 3, MPI_INT, to, 8, &position, w) != MPI_SUCCESS); /* no room */
    position = 44;
    OK(!VMPI || MPI_Pack(from, 2, MPI_INT, to, sizeof to, &position, w) != MPI_SUCCESS);
    position = 0;
    MUST(MPI_ERR_COUNT, MPI_Pack_size(-1, MPI_INT, w, &n));
    IS(MPI_ERR_TYPE, MPI_Pack_size(1, MPI_DATATYPE_NULL, w, &n));
    IS(MPI_ERR_COMM, MPI_Pack_size(1, MPI_INT, MPI_COMM_NULL, &n));
    IS(MPI_ERR_COUNT, MPI_Unpack(to, 48, &position, from, -1, MPI_INT, w));
    IS(MPI_ERR_TYPE, MPI_Unpack(to, 48, &position, from, 1, MPI_DATATYPE_NULL, w));
    OK(!VMPI || MPI_Unpack(to, 8, &position, from, 3, MPI_INT, w) != MPI_SUCCESS);
    OK(MPI_Pack_external("no such representation", from, 1, MPI_INT, to, 48, &far[0]) != MPI_SUCCESS || !VMPI);
    size = 0;
    FINE(MPI_Pack_external_size("external32", 3, MPI_LONG_DOUBLE, &size));
    EQ(size, 48);
    MPI_Type_free(&t);

    PART("names and attributes");
    char name[MPI_MAX_OBJECT_NAME], longest[MPI_MAX_OBJECT_NAME + 50];
    memset(longest, 'n', sizeof longest - 1), longest[sizeof longest - 1] = 0;
    MPI_Type_dup(MPI_INT, &t);
    MPI_Type_get_name(t, name, &n);
    STRICT(n == 0);
    IS(MPI_ERR_TYPE, MPI_Type_set_name(MPI_DATATYPE_NULL, "x"));
    FINE(MPI_Type_set_name(t, "mine")), MPI_Type_get_name(t, name, &n);
    OK(n == 4 && !strcmp(name, "mine"));
    MPI_Type_get_name(MPI_DATATYPE_NULL, name, &n);
    MUST(MPI_SUCCESS, strcmp(name, "MPI_DATATYPE_NULL") ? MPI_ERR_OTHER : MPI_SUCCESS);
    int key = MPI_KEYVAL_INVALID, flag, *value;
    EITHER(MPI_ERR_KEYVAL, MPI_ERR_OTHER, MPI_Type_set_attr(t, MPI_KEYVAL_INVALID, NULL));
    EITHER(MPI_ERR_KEYVAL, MPI_ERR_OTHER, MPI_Type_get_attr(t, MPI_KEYVAL_INVALID, &value, &flag));
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    IS(MPI_ERR_TYPE, MPI_Type_set_attr(MPI_DATATYPE_NULL, key, &n));
    FINE(MPI_Type_set_attr(t, key, &n));
    FINE(MPI_Type_get_attr(t, key, &value, &flag)), OK(flag && value == &n);
    FINE(MPI_Type_delete_attr(t, key));
    FINE(MPI_Type_get_attr(t, key, &value, &flag)), OK(!flag);
    /* A key of another kind of object. */
    int other;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL);
    MUST(MPI_ERR_KEYVAL, MPI_Type_set_attr(t, other, &n));
    MPI_Comm_free_keyval(&other), MPI_Type_free_keyval(&key);
    OK(key == MPI_KEYVAL_INVALID);
    MPI_Type_free(&t);
    return t_end();
}
