//! Communicators, groups and what hangs on them, as Fortran calls them.

/// Communicators.
#[macro_export]
macro_rules! f_table_comm {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn comm_compare COMM_COMPARE = c::comm_compare(comm1: In<h::Comm>, comm2: In<h::Comm>, result: Ints);
            fn comm_create COMM_CREATE = c::comm_create(comm: In<h::Comm>, group: In<h::Group>, newcomm: Out<h::Comm>);
            fn comm_create_group COMM_CREATE_GROUP = c::comm_create_group(comm: In<h::Comm>, group: In<h::Group>,
                tag: Int, newcomm: Out<h::Comm>);
            fn comm_disconnect COMM_DISCONNECT = c::comm_disconnect(comm: InOut<h::Comm>);
            fn comm_dup COMM_DUP = c::comm_dup(comm: In<h::Comm>, newcomm: Out<h::Comm>);
            fn comm_dup_with_info COMM_DUP_WITH_INFO = c::comm_dup_with_info(comm: In<h::Comm>, info: In<h::Info>,
                newcomm: Out<h::Comm>);
            fn comm_free COMM_FREE = c::comm_free(comm: InOut<h::Comm>);
            fn comm_get_info COMM_GET_INFO = c::comm_get_info(comm: In<h::Comm>, info_used: Out<h::Info>);
            fn comm_get_parent COMM_GET_PARENT = c::comm_get_parent(parent: Out<h::Comm>);
            fn comm_get_name COMM_GET_NAME = c::comm_get_name(comm: In<h::Comm>, comm_name: StrOut[comm_name_len],
                resultlen: Ints; comm_name_len);
            fn comm_group COMM_GROUP = c::comm_group(comm: In<h::Comm>, group: Out<h::Group>);
            fn comm_idup COMM_IDUP = c::comm_idup(comm: In<h::Comm>, newcomm: Out<h::Comm>, request: Out<h::Request>);
            fn comm_rank COMM_RANK = c::comm_rank(comm: In<h::Comm>, rank: Ints);
            fn comm_remote_group COMM_REMOTE_GROUP = c::comm_remote_group(comm: In<h::Comm>, group: Out<h::Group>);
            fn comm_remote_size COMM_REMOTE_SIZE = c::comm_remote_size(comm: In<h::Comm>, size: Ints);
            fn comm_set_info COMM_SET_INFO = c::comm_set_info(comm: In<h::Comm>, info: In<h::Info>);
            fn comm_set_name COMM_SET_NAME = c::comm_set_name(comm: In<h::Comm>, comm_name: StrIn[comm_name_len];
                comm_name_len);
            fn comm_size COMM_SIZE = c::comm_size(comm: In<h::Comm>, size: Ints);
            fn comm_split COMM_SPLIT = c::comm_split(comm: In<h::Comm>, color: Int, key: Int, newcomm: Out<h::Comm>);
            fn comm_split_type COMM_SPLIT_TYPE = c::comm_split_type(comm: In<h::Comm>, split_type: Int, key: Int,
                info: In<h::Info>, newcomm: Out<h::Comm>);
            fn comm_test_inter COMM_TEST_INTER = c::comm_test_inter(comm: In<h::Comm>, flag: LogicalOut);
            fn intercomm_create INTERCOMM_CREATE = c::intercomm_create(local_comm: In<h::Comm>, local_leader: Int,
                peer_comm: In<h::Comm>, remote_leader: Int, tag: Int, newintercomm: Out<h::Comm>);
            fn intercomm_merge INTERCOMM_MERGE = c::intercomm_merge(intercomm: In<h::Comm>, high: LogicalIn,
                newintracomm: Out<h::Comm>);
        }
    };
}

/// Groups.
#[macro_export]
macro_rules! f_table_group {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn group_compare GROUP_COMPARE = c::group_compare(group1: In<h::Group>, group2: In<h::Group>, result: Ints);
            fn group_difference GROUP_DIFFERENCE = c::group_difference(group1: In<h::Group>, group2: In<h::Group>,
                newgroup: Out<h::Group>);
            fn group_excl GROUP_EXCL = c::group_excl(group: In<h::Group>, n: Int, ranks: Ints, newgroup: Out<h::Group>);
            fn group_free GROUP_FREE = c::group_free(group: InOut<h::Group>);
            fn group_incl GROUP_INCL = c::group_incl(group: In<h::Group>, n: Int, ranks: Ints, newgroup: Out<h::Group>);
            fn group_intersection GROUP_INTERSECTION = c::group_intersection(group1: In<h::Group>, group2: In<h::Group>,
                newgroup: Out<h::Group>);
            fn group_range_excl GROUP_RANGE_EXCL = c::group_range_excl(group: In<h::Group>, n: Int, ranges: Triples,
                newgroup: Out<h::Group>);
            fn group_range_incl GROUP_RANGE_INCL = c::group_range_incl(group: In<h::Group>, n: Int, ranges: Triples,
                newgroup: Out<h::Group>);
            fn group_rank GROUP_RANK = c::group_rank(group: In<h::Group>, rank: Ints);
            fn group_size GROUP_SIZE = c::group_size(group: In<h::Group>, size: Ints);
            fn group_translate_ranks GROUP_TRANSLATE_RANKS = c::group_translate_ranks(group1: In<h::Group>, n: Int,
                ranks1: Ints, group2: In<h::Group>, ranks2: Ints);
            fn group_union GROUP_UNION = c::group_union(group1: In<h::Group>, group2: In<h::Group>,
                newgroup: Out<h::Group>);
        }
    };
}

/// Attributes and their keys.
#[macro_export]
macro_rules! f_table_attr {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn attr_delete ATTR_DELETE = c::attr_delete(comm: In<h::Comm>, keyval: Int);
            fn attr_get ATTR_GET = internal::attr_get(comm: In<h::Comm>, keyval: Int, value: Ints, flag: LogicalOut);
            fn attr_put ATTR_PUT = internal::attr_put(comm: In<h::Comm>, keyval: Int, value: Int);
            fn comm_create_keyval COMM_CREATE_KEYVAL = f::comm_create_keyval(copy_fn: Buf, delete_fn: Buf, keyval: Ints,
                extra_state: Aint);
            fn comm_delete_attr COMM_DELETE_ATTR = c::comm_delete_attr(comm: In<h::Comm>, keyval: Int);
            fn comm_free_keyval COMM_FREE_KEYVAL = c::comm_free_keyval(comm_keyval: Ints);
            fn comm_get_attr COMM_GET_ATTR = internal::comm_get_attr(comm: In<h::Comm>, keyval: Int, value: Aints,
                flag: LogicalOut);
            fn comm_set_attr COMM_SET_ATTR = internal::comm_set_attr(comm: In<h::Comm>, keyval: Int, value: Aint);
            fn keyval_create KEYVAL_CREATE = f::keyval_create(copy_fn: Buf, delete_fn: Buf, keyval: Ints,
                extra_state: Int);
            fn keyval_free KEYVAL_FREE = c::keyval_free(keyval: Ints);
            fn type_create_keyval TYPE_CREATE_KEYVAL = f::type_create_keyval(copy_fn: Buf, delete_fn: Buf, keyval: Ints,
                extra_state: Aint);
            fn type_delete_attr TYPE_DELETE_ATTR = c::type_delete_attr(ty: In<h::Datatype>, keyval: Int);
            fn type_free_keyval TYPE_FREE_KEYVAL = c::type_free_keyval(type_keyval: Ints);
            fn type_get_attr TYPE_GET_ATTR = internal::type_get_attr(ty: In<h::Datatype>, keyval: Int, value: Aints,
                flag: LogicalOut);
            fn type_set_attr TYPE_SET_ATTR = internal::type_set_attr(ty: In<h::Datatype>, keyval: Int, value: Aint);
            fn win_create_keyval WIN_CREATE_KEYVAL = f::win_create_keyval(copy_fn: Buf, delete_fn: Buf, keyval: Ints,
                extra_state: Aint);
            fn win_delete_attr WIN_DELETE_ATTR = c::win_delete_attr(win: In<h::Win>, keyval: Int);
            fn win_free_keyval WIN_FREE_KEYVAL = c::win_free_keyval(win_keyval: Ints);
            fn win_get_attr WIN_GET_ATTR = internal::win_get_attr(win: In<h::Win>, keyval: Int, value: Aints,
                flag: LogicalOut);
            fn win_set_attr WIN_SET_ATTR = internal::win_set_attr(win: In<h::Win>, keyval: Int, value: Aint);
        }
    };
}

/// Error handlers.
#[macro_export]
macro_rules! f_table_errhandler {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn comm_call_errhandler COMM_CALL_ERRHANDLER = c::comm_call_errhandler(comm: In<h::Comm>, errorcode: Int);
            fn comm_create_errhandler COMM_CREATE_ERRHANDLER = f::comm_create_errhandler(function: Buf,
                errhandler: Out<h::Errhandler>);
            fn comm_get_errhandler COMM_GET_ERRHANDLER = c::comm_get_errhandler(comm: In<h::Comm>,
                errhandler: Out<h::Errhandler>);
            fn comm_set_errhandler COMM_SET_ERRHANDLER = c::comm_set_errhandler(comm: In<h::Comm>,
                errhandler: In<h::Errhandler>);
            fn errhandler_create ERRHANDLER_CREATE = f::comm_create_errhandler(function: Buf,
                errhandler: Out<h::Errhandler>);
            fn errhandler_free ERRHANDLER_FREE = c::errhandler_free(errhandler: InOut<h::Errhandler>);
            fn errhandler_get ERRHANDLER_GET = c::errhandler_get(comm: In<h::Comm>, errhandler: Out<h::Errhandler>);
            fn errhandler_set ERRHANDLER_SET = c::errhandler_set(comm: In<h::Comm>, errhandler: In<h::Errhandler>);
        }
    };
}

/// Virtual topologies.
#[macro_export]
macro_rules! f_table_topo {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn cart_coords CART_COORDS = c::cart_coords(comm: In<h::Comm>, rank: Int, maxdims: Int, coords: Ints);
            fn cart_create CART_CREATE = c::cart_create(comm_old: In<h::Comm>, ndims: Int, dims: Ints, periods: Ints,
                reorder: LogicalIn, comm_cart: Out<h::Comm>);
            fn cart_get CART_GET = c::cart_get(comm: In<h::Comm>, maxdims: Int, dims: Ints,
                periods: LogicalsOut[n(maxdims)], coords: Ints);
            fn cart_map CART_MAP = c::cart_map(comm: In<h::Comm>, ndims: Int, dims: Ints, periods: Ints, newrank: Ints);
            fn cart_rank CART_RANK = c::cart_rank(comm: In<h::Comm>, coords: Ints, rank: Ints);
            fn cart_shift CART_SHIFT = c::cart_shift(comm: In<h::Comm>, direction: Int, disp: Int, rank_source: Ints,
                rank_dest: Ints);
            fn cart_sub CART_SUB = c::cart_sub(comm: In<h::Comm>, remain_dims: Ints, newcomm: Out<h::Comm>);
            fn cartdim_get CARTDIM_GET = c::cartdim_get(comm: In<h::Comm>, ndims: Ints);
            fn dims_create DIMS_CREATE = c::dims_create(nnodes: Int, ndims: Int, dims: Ints);
            fn dist_graph_create DIST_GRAPH_CREATE = c::dist_graph_create(comm_old: In<h::Comm>, n: Int, sources: Ints,
                degrees: Ints, destinations: Ints, weights: Weights, info: In<h::Info>, reorder: LogicalIn,
                comm_dist_graph: Out<h::Comm>);
            fn dist_graph_create_adjacent DIST_GRAPH_CREATE_ADJACENT = c::dist_graph_create_adjacent(
                comm_old: In<h::Comm>, indegree: Int, sources: Ints, sourceweights: Weights, outdegree: Int,
                destinations: Ints, destweights: Weights, info: In<h::Info>, reorder: LogicalIn,
                comm_dist_graph: Out<h::Comm>);
            fn dist_graph_neighbors DIST_GRAPH_NEIGHBORS = c::dist_graph_neighbors(comm: In<h::Comm>, maxindegree: Int,
                sources: Ints, sourceweights: Weights, maxoutdegree: Int, destinations: Ints, destweights: Weights);
            fn dist_graph_neighbors_count DIST_GRAPH_NEIGHBORS_COUNT = c::dist_graph_neighbors_count(comm: In<h::Comm>,
                indegree: Ints, outdegree: Ints, weighted: LogicalOut);
            fn graph_create GRAPH_CREATE = c::graph_create(comm_old: In<h::Comm>, nnodes: Int, indx: Ints, edges: Ints,
                reorder: LogicalIn, comm_graph: Out<h::Comm>);
            fn graph_get GRAPH_GET = c::graph_get(comm: In<h::Comm>, maxindex: Int, maxedges: Int, indx: Ints,
                edges: Ints);
            fn graph_map GRAPH_MAP = c::graph_map(comm: In<h::Comm>, nnodes: Int, indx: Ints, edges: Ints,
                newrank: Ints);
            fn graph_neighbors GRAPH_NEIGHBORS = c::graph_neighbors(comm: In<h::Comm>, rank: Int, maxneighbors: Int,
                neighbors: Ints);
            fn graph_neighbors_count GRAPH_NEIGHBORS_COUNT = c::graph_neighbors_count(comm: In<h::Comm>, rank: Int,
                nneighbors: Ints);
            fn graphdims_get GRAPHDIMS_GET = c::graphdims_get(comm: In<h::Comm>, nnodes: Ints, nedges: Ints);
            fn topo_test TOPO_TEST = c::topo_test(comm: In<h::Comm>, status: Ints);
        }
    };
}
