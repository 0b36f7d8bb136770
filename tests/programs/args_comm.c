/* Groups, communicators, caching, topologies, info, error handlers, environment: each wrong argument and its class; what is empty, what is null. */
#include "args.h"
static MPI_Comm w;

static void groups(void) {
    PART("groups");
    MPI_Group g, h, e;
    int n, ranks[3] = {0, 0, 0}, out[3], range[1][3] = {{0, 5, 0}}, beyond[1][3] = {{0, 99, 1}}, minus[1] = {-50};
    FINE(MPI_Comm_group(w, &g));
    IS(MPI_ERR_COMM, MPI_Comm_group(MPI_COMM_NULL, &h));
    IS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &n));
    IS(MPI_ERR_GROUP, MPI_Group_rank(MPI_GROUP_NULL, &n));
    IS(MPI_ERR_GROUP, MPI_Group_incl(MPI_GROUP_NULL, 1, ranks, &h));
    IS(MPI_ERR_GROUP, MPI_Group_union(MPI_GROUP_NULL, g, &h));
    IS(MPI_ERR_GROUP, MPI_Group_compare(g, MPI_GROUP_NULL, &n));
    IS(MPI_ERR_GROUP, MPI_Group_free(&(MPI_Group){MPI_GROUP_NULL}));
    IS(MPI_ERR_RANK, MPI_Group_incl(g, 1, minus, &h));
    IS(MPI_ERR_RANK, MPI_Group_excl(g, 1, minus, &h));
    MUST(MPI_ERR_RANK, MPI_Group_incl(g, 2, ranks, &h)); /* the same one twice */
    OK(!VMPI || MPI_Group_incl(g, -1, ranks, &h) != MPI_SUCCESS);
    OK(MPI_Group_range_incl(g, 1, range, &h) != MPI_SUCCESS); /* stride 0 */
    OK(MPI_Group_range_incl(g, 1, beyond, &h) != MPI_SUCCESS);
    OK(MPI_Group_range_excl(g, 1, beyond, &h) != MPI_SUCCESS);
    MUST(MPI_ERR_RANK, MPI_Group_translate_ranks(g, 1, minus, g, out));
    ranks[0] = MPI_PROC_NULL;
    FINE(MPI_Group_translate_ranks(g, 1, ranks, g, out)), EQ(out[0], MPI_PROC_NULL);
    FINE(MPI_Group_translate_ranks(g, 0, NULL, g, NULL));
    FINE(MPI_Group_incl(g, 0, NULL, &e)), OK(e == MPI_GROUP_EMPTY);
    FINE(MPI_Group_difference(g, g, &e)), OK(e == MPI_GROUP_EMPTY);
    FINE(MPI_Group_intersection(g, MPI_GROUP_EMPTY, &e)), OK(e == MPI_GROUP_EMPTY);
    FINE(MPI_Group_size(MPI_GROUP_EMPTY, &n)), EQ(n, 0);
    FINE(MPI_Group_rank(MPI_GROUP_EMPTY, &n)), EQ(n, MPI_UNDEFINED);
    FINE(MPI_Group_excl(g, 0, NULL, &h));
    FINE(MPI_Group_compare(g, h, &n)), EQ(n, MPI_IDENT);
    MPI_Group_free(&h), MPI_Group_free(&g);
    OK(g == MPI_GROUP_NULL);
}

static void comms(void) {
    PART("communicators");
    MPI_Comm c, d;
    MPI_Group g;
    int n, flag;
    char name[MPI_MAX_OBJECT_NAME];
    IS(MPI_ERR_COMM, MPI_Comm_size(MPI_COMM_NULL, &n));
    IS(MPI_ERR_COMM, MPI_Comm_rank(MPI_COMM_NULL, &n));
    IS(MPI_ERR_COMM, MPI_Comm_compare(w, MPI_COMM_NULL, &n));
    IS(MPI_ERR_COMM, MPI_Comm_dup(MPI_COMM_NULL, &c));
    IS(MPI_ERR_COMM, MPI_Comm_split(MPI_COMM_NULL, 0, 0, &c));
    IS(MPI_ERR_COMM, MPI_Comm_test_inter(MPI_COMM_NULL, &flag));
    IS(MPI_ERR_COMM, MPI_Comm_free(&(MPI_Comm){MPI_COMM_NULL}));
    MUST(MPI_ERR_COMM, MPI_Comm_remote_size(w, &n));
    MUST(MPI_ERR_COMM, MPI_Comm_remote_group(w, &g));
    ONLY(MPI_ERR_COMM, MPI_Intercomm_merge(w, 0, &c));
    IS(MPI_ERR_GROUP, MPI_Comm_create(w, MPI_GROUP_NULL, &c));
    MUST(MPI_ERR_GROUP, MPI_Comm_create_group(w, MPI_GROUP_NULL, 0, &c));
    EITHER(MPI_ERR_ARG, MPI_ERR_OTHER, MPI_Comm_split(w, -5, 0, &c));
    FINE(MPI_Comm_split(w, MPI_UNDEFINED, 0, &c)), OK(c == MPI_COMM_NULL);
    FINE(MPI_Comm_split_type(w, MPI_UNDEFINED, 0, MPI_INFO_NULL, &c)), OK(c == MPI_COMM_NULL);
    EITHER(MPI_ERR_ARG, MPI_ERR_OTHER, MPI_Comm_split_type(w, 54321, 0, MPI_INFO_NULL, &c));
    FINE(MPI_Comm_create(w, MPI_GROUP_EMPTY, &c)), OK(c == MPI_COMM_NULL);
    IS(MPI_ERR_COMM, MPI_Comm_set_name(MPI_COMM_NULL, "x"));
    MPI_Comm_dup(w, &c);
    MPI_Comm_get_name(c, name, &n), EQ(n, 0);
    MPI_Comm_get_name(w, name, &n), OK(!strcmp(name, "MPI_COMM_WORLD"));
    MUST(MPI_SUCCESS, MPI_Comm_get_name(MPI_COMM_NULL, name, &n));
    STRICT(!strcmp(name, "MPI_COMM_NULL"));
    MPI_Comm_compare(w, c, &n), EQ(n, MPI_CONGRUENT);
    MPI_Comm_compare(c, c, &n), EQ(n, MPI_IDENT);
    if (t_size > 1) {
        MPI_Comm_split(w, 0, -t_rank, &d);
        MPI_Comm_compare(w, d, &n), EQ(n, MPI_SIMILAR);
        MPI_Comm_free(&d);
        MPI_Comm_compare(w, MPI_COMM_SELF, &n), EQ(n, MPI_UNEQUAL);
    }
    MPI_Comm_free(&c);

    PART("caching");
    int key, other, *value, gone = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &other, NULL);
    IS(MPI_ERR_COMM, MPI_Comm_set_attr(MPI_COMM_NULL, key, &n));
    IS(MPI_ERR_COMM, MPI_Comm_get_attr(MPI_COMM_NULL, key, &value, &flag));
    EITHER(MPI_ERR_KEYVAL, MPI_ERR_OTHER, MPI_Comm_get_attr(w, MPI_KEYVAL_INVALID, &value, &flag));
    EITHER(MPI_ERR_KEYVAL, MPI_ERR_OTHER, MPI_Comm_delete_attr(w, MPI_KEYVAL_INVALID));
    EITHER(MPI_ERR_KEYVAL, MPI_ERR_OTHER, MPI_Comm_free_keyval(&gone));
    MUST(MPI_ERR_KEYVAL, MPI_Comm_set_attr(w, other, &n));
    MUST(MPI_ERR_KEYVAL, MPI_Comm_set_attr(w, MPI_TAG_UB, &n));
    MUST(MPI_ERR_KEYVAL, MPI_Comm_delete_attr(w, MPI_TAG_UB));
    MUST(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&(int){MPI_TAG_UB}));
    FINE(MPI_Comm_get_attr(w, key, &value, &flag)), OK(!flag);
    MPI_Comm_free_keyval(&key), MPI_Type_free_keyval(&other);
}

static void topologies(void) {
    PART("topologies");
    MPI_Comm c, d;
    int dims[2] = {t_size, 1}, periods[2] = {0, 1}, coords[2], n, m, large[2] = {t_size + 1, 1}, minus[2] = {-1, 1}, out[2] = {t_size, 0};
    EITHER(MPI_ERR_TOPOLOGY, MPI_ERR_COMM, MPI_Cartdim_get(w, &n));
    EITHER(MPI_ERR_TOPOLOGY, MPI_ERR_COMM, MPI_Cart_coords(w, 0, 2, coords));
    EITHER(MPI_ERR_TOPOLOGY, MPI_ERR_COMM, MPI_Cart_shift(w, 0, 1, &n, &m));
    EITHER(MPI_ERR_TOPOLOGY, MPI_ERR_COMM, MPI_Graphdims_get(w, &n, &m));
    EITHER(MPI_ERR_TOPOLOGY, MPI_ERR_COMM, MPI_Dist_graph_neighbors_count(w, &n, &m, &m));
    MUST(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(&n, 1, MPI_INT, &m, 1, MPI_INT, w));
    IS(MPI_ERR_COMM, MPI_Cart_create(MPI_COMM_NULL, 2, dims, periods, 0, &c));
    EITHER(MPI_ERR_ARG, MPI_ERR_DIMS, MPI_Cart_create(w, 2, large, periods, 0, &c));
    MUST(MPI_ERR_DIMS, MPI_Cart_create(w, 2, minus, periods, 0, &c));
    EITHER(MPI_ERR_ARG, MPI_ERR_DIMS, MPI_Cart_create(w, -1, dims, periods, 0, &c));
    FINE(MPI_Topo_test(w, &n)), EQ(n, MPI_UNDEFINED);
    FINE(MPI_Cart_create(w, 2, dims, periods, 0, &c));
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MUST(MPI_ERR_RANK, MPI_Cart_coords(c, t_size, 2, coords));
    MUST(MPI_ERR_RANK, MPI_Cart_coords(c, -1, 2, coords));
    EITHER(MPI_ERR_ARG, MPI_ERR_RANK, MPI_Cart_rank(c, out, &n)); /* outside, in a dimension that is not periodic */
    out[0] = 0, out[1] = 7;
    FINE(MPI_Cart_rank(c, out, &n)), EQ(n, 0); /* periodic */
    MUST(MPI_ERR_DIMS, MPI_Cart_shift(c, 2, 1, &n, &m));
    EITHER(MPI_ERR_ARG, MPI_ERR_DIMS, MPI_Cart_shift(c, -1, 1, &n, &m));
    FINE(MPI_Cart_shift(c, 0, t_size, &n, &m)), OK(n == MPI_PROC_NULL && m == MPI_PROC_NULL);
    FINE(MPI_Cart_shift(c, 0, 0, &n, &m)), OK(n == t_rank && m == t_rank);
    EITHER(MPI_ERR_TOPOLOGY, MPI_ERR_COMM, MPI_Graphdims_get(c, &n, &m));
    int keep[2] = {0, 0};
    FINE(MPI_Cart_sub(c, keep, &d));
    MPI_Comm_size(d, &n), EQ(n, 1);
    FINE(MPI_Cartdim_get(d, &n)), EQ(n, 0);
    MPI_Comm_free(&d), MPI_Comm_free(&c);
    /* No dimensions: one process has it. */
    FINE(MPI_Cart_create(w, 0, NULL, NULL, 0, &c));
    OK((c == MPI_COMM_NULL) == (t_rank > 0));
    if (c != MPI_COMM_NULL) MPI_Comm_free(&c);
    int zero[2] = {0, 0}, odd[2] = {5, 0}, below[2] = {-2, 0};
    FINE(MPI_Dims_create(12, 2, zero)), OK(zero[0] == 4 && zero[1] == 3);
    EITHER(MPI_ERR_DIMS, MPI_ERR_ARG, MPI_Dims_create(12, 2, odd));
    EITHER(MPI_ERR_DIMS, MPI_ERR_ARG, MPI_Dims_create(12, 2, below));
    int index[1] = {0}, none[1] = {0};
    FINE(MPI_Graph_create(w, 0, index, none, 0, &c)), OK(c == MPI_COMM_NULL);
    int ends[2] = {1, 2}, edges[2] = {99, 0};
    OK(!VMPI || MPI_Graph_create(w, 1, ends, edges, 0, &c) != MPI_SUCCESS);
    OK(MPI_Graph_create(w, t_size + 1, ends, none, 0, &c) != MPI_SUCCESS);
    int far[1] = {t_size};
    OK(MPI_Dist_graph_create_adjacent(w, 1, far, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c) != MPI_SUCCESS);
    FINE(MPI_Dist_graph_create_adjacent(w, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &c));
    MUST(MPI_SUCCESS, MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, c));
    MUST(MPI_SUCCESS, MPI_Neighbor_allgather(NULL, 1, MPI_INT, NULL, 1, MPI_INT, c));
    MPI_Comm_free(&c);
}

static void infos(void) {
    PART("info");
    MPI_Info i, j;
    int n, flag;
    char value[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY + 40];
    memset(key, 'k', sizeof key - 1), key[sizeof key - 1] = 0;
    MPI_Info_create(&i);
    EITHER(MPI_ERR_INFO_KEY, MPI_ERR_ARG, MPI_Info_set(i, key, "v"));
    EITHER(MPI_ERR_INFO_KEY, MPI_ERR_ARG, MPI_Info_set(i, "", "v"));
    IS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(i, "absent"));
    EITHER(MPI_ERR_ARG, MPI_ERR_INFO_KEY, MPI_Info_get_nthkey(i, 0, value));
    EITHER(MPI_ERR_INFO, MPI_ERR_ARG, MPI_Info_get_nkeys(MPI_INFO_NULL, &n));
    EITHER(MPI_ERR_INFO, MPI_ERR_ARG, MPI_Info_set(MPI_INFO_NULL, "a", "b"));
    EITHER(MPI_ERR_INFO, MPI_ERR_ARG, MPI_Info_dup(MPI_INFO_NULL, &j));
    EITHER(MPI_ERR_INFO, MPI_ERR_ARG, MPI_Info_free(&(MPI_Info){MPI_INFO_NULL}));
    FINE(MPI_Info_set(i, "a", "first")), FINE(MPI_Info_set(i, "b", "2")), FINE(MPI_Info_set(i, "a", "longer value"));
    MUST(MPI_SUCCESS, MPI_Info_get(i, "a", 4, value, &flag)), STRICT(flag && !strcmp(value, "long"));
    FINE(MPI_Info_get_valuelen(i, "a", &n, &flag)), OK(flag && n == 12);
    FINE(MPI_Info_get(i, "absent", 10, value, &flag)), OK(!flag);
    FINE(MPI_Info_get_nkeys(i, &n)), EQ(n, 2);
    EITHER(MPI_ERR_ARG, MPI_ERR_INFO_KEY, MPI_Info_get_nthkey(i, 2, value));
    FINE(MPI_Info_dup(i, &j)), FINE(MPI_Info_delete(i, "a"));
    FINE(MPI_Info_get_nkeys(j, &n)), EQ(n, 2);
    MPI_Info_free(&i), MPI_Info_free(&j);
    OK(i == MPI_INFO_NULL);
}

static void environment(void) {
    PART("error handlers, environment");
    MPI_Errhandler h;
    int n, class;
    IS(MPI_ERR_COMM, MPI_Comm_set_errhandler(MPI_COMM_NULL, MPI_ERRORS_RETURN));
    EITHER(MPI_ERR_ARG, MPI_ERR_OTHER, MPI_Comm_set_errhandler(w, MPI_ERRHANDLER_NULL) == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_ARG);
    IS(MPI_ERR_COMM, MPI_Comm_get_errhandler(MPI_COMM_NULL, &h));
    IS(MPI_ERR_COMM, MPI_Comm_call_errhandler(MPI_COMM_NULL, MPI_ERR_RANK));
    FINE(MPI_Comm_call_errhandler(w, MPI_ERR_RANK));
    OK(MPI_Errhandler_free(&(MPI_Errhandler){MPI_ERRHANDLER_NULL}) != MPI_SUCCESS);
    FINE(MPI_Comm_get_errhandler(w, &h)), OK(h == MPI_ERRORS_RETURN);
    FINE(MPI_Errhandler_free(&h)), OK(h == MPI_ERRHANDLER_NULL);
    FINE(MPI_Error_class(MPI_ERR_RANK, &class)), EQ(class, MPI_ERR_RANK);
    OK(MPI_Error_class(-77, &class) != MPI_SUCCESS || class == MPI_ERR_UNKNOWN || !VMPI);
    OK(MPI_Add_error_string(MPI_ERR_RANK, "no") != MPI_SUCCESS); /* predefined */
    OK(MPI_Add_error_code(-5, &n) != MPI_SUCCESS || !VMPI);
    void *p = &n;
    FINE(MPI_Alloc_mem(0, MPI_INFO_NULL, &p)), FINE(MPI_Free_mem(p));
    EITHER(MPI_ERR_ARG, MPI_ERR_NO_MEM, MPI_Alloc_mem(-1, MPI_INFO_NULL, &p));
    FINE(MPI_Free_mem(NULL));
    MPI_Op op;
    IS(MPI_ERR_OP, MPI_Op_free(&(MPI_Op){MPI_OP_NULL}) == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_OP);
    EITHER(MPI_ERR_OP, MPI_ERR_ARG, MPI_Op_free(&(MPI_Op){MPI_MAX}));
    IS(MPI_ERR_OP, MPI_Op_commutative(MPI_OP_NULL, &n));
    (void)op;
    EITHER(MPI_ERR_REQUEST, MPI_ERR_ARG, MPI_Grequest_complete(MPI_REQUEST_NULL));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    w = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(w, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    groups(), comms(), topologies(), infos(), environment();
    return t_end();
}
