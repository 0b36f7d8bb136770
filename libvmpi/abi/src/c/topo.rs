//! Virtual topologies: MPI 4.1 chapter 8 (neighbourhood collectives are in `neighbor`).

use super::args::{array, fill, not_negative, not_null, on_comm};
use crate::abi::{Abi, CComm, CInfo, Weights, dec, enc};
use crate::entry::Target;
use std::ffi::c_int;
use std::rc::Rc;
use vmpi_core::comm::{self, Communicator};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Comm, Handle};
use vmpi_core::info;
use vmpi_core::topo::{self, Distributed, Graph, cart, dims, graph};

fn intra<A: Abi>(comm: CComm<A>) -> Result<Rc<Communicator>> {
    comm::get_intra(dec::<A, _>(comm))
}

fn made<A: Abi>(comm: Option<Rc<Communicator>>) -> CComm<A> {
    enc::<A, _>(comm.map_or(Comm::NULL, |comm| comm.handle))
}

/// An array of C logicals.
///
/// # Safety
/// As `args::array`.
unsafe fn logicals(pointer: *const c_int, count: usize, what: &str) -> Result<Vec<bool>> {
    // SAFETY: as the caller says.
    Ok(unsafe { array(pointer, count, what)? }.iter().map(|&value| value != 0).collect())
}

/// Dimensions and periods of a grid.
///
/// # Safety
/// Both pointers must be null or hold `ndims` elements.
unsafe fn shape<'a>(ndims: c_int, dims: *const c_int, periods: *const c_int) -> Result<(&'a [i32], Vec<bool>)> {
    let count = not_negative(ndims, Class::Dims, "ndims")?;
    // SAFETY: as the caller says.
    unsafe { Ok((array(dims, count, "dims")?, logicals(periods, count, "periods")?)) }
}

/// The graph that MPI_Graph_create and MPI_Graph_map describe.
///
/// # Safety
/// `index` must be null or hold `nnodes` elements, `edges` null or as many as the last of them says.
unsafe fn described(nnodes: c_int, index: *const c_int, edges: *const c_int) -> Result<Graph> {
    let count = not_negative(nnodes, Class::Arg, "nnodes")?;
    // SAFETY: as the caller says.
    let index = unsafe { array(index, count, "index")? };
    // SAFETY: as the caller says.
    Graph::new(index, |count| unsafe { array(edges, count, "edges") })
}

/// A weights argument for `count` edges, and whether there are weights at all.
///
/// # Safety
/// `weights` must be one of the face's sentinels, null or hold `count` elements.
unsafe fn weights_at<'a, A: Abi>(weights: *const c_int, count: usize, what: &str) -> Result<(&'a [i32], bool)> {
    match A::weights_in(weights) {
        Weights::Unweighted => Ok((&[], false)),
        Weights::Empty if count > 0 => fail(Class::Arg, format!("{what} is MPI_WEIGHTS_EMPTY, but there are {count}")),
        Weights::Empty => Ok((&[], true)),
        // SAFETY: as the caller says.
        Weights::Array(weights) => Ok((unsafe { array(weights, count, what)? }, true)),
    }
}

/// Write a prefix of `values`, as long as the program has room for.
///
/// # Safety
/// `pointer` must have room for `most` elements.
unsafe fn prefix(pointer: *mut c_int, most: usize, values: &[i32], what: &str) -> Result<()> {
    let count = most.min(values.len());
    if count > 0 {
        not_null(pointer, what)?;
    }
    // SAFETY: as the caller says.
    unsafe { fill(pointer, values[..count].iter().copied()) };
    Ok(())
}

/// The same for weights, which the program may not want.
///
/// # Safety
/// `pointer` must be one of the face's sentinels or have room for `most` elements.
unsafe fn weights_prefix<A: Abi>(pointer: *mut c_int, most: usize, values: &[i32], what: &str) -> Result<()> {
    match A::weights_in(pointer) {
        // SAFETY: as the caller says.
        Weights::Array(_) => unsafe { prefix(pointer, most, values, what) },
        Weights::Unweighted | Weights::Empty => Ok(()),
    }
}

crate::entry_points! {
    /// `MPI_Dims_create`.
    active fn dims_create = "MPI_Dims_create"(nnodes: c_int, ndims: c_int, dims: *mut c_int) for Target::Process => {
        let count = not_negative(ndims, Class::Dims, "ndims")?;
        let mut shape = array(dims.cast_const(), count, "dims")?.to_vec();
        dims::create(nnodes, &mut shape)?;
        fill(dims, shape);
    }

    /// `MPI_Cart_create`; ranks are not reordered.
    active fn cart_create = "MPI_Cart_create"(
        comm: CComm<A>, ndims: c_int, dims: *const c_int, periods: *const c_int, _reorder: c_int,
        newcomm: *mut CComm<A>,
    ) for on_comm::<A>(comm) => {
        let comm = intra::<A>(comm)?;
        let (dims, periods) = shape(ndims, dims, periods)?;
        not_null(newcomm, "comm_cart")?;
        *newcomm = enc::<A, _>(Comm::NULL); // what a failure leaves
        *newcomm = made::<A>(cart::create(&comm, dims, &periods)?);
    }

    /// `MPI_Cartdim_get`.
    active fn cartdim_get = "MPI_Cartdim_get"(comm: CComm<A>, ndims: *mut c_int) for on_comm::<A>(comm) => {
        let comm = comm::get(dec::<A, _>(comm))?;
        not_null(ndims, "ndims")?;
        *ndims = topo::with_cart(&comm, |cart| Ok(cart.dims.len() as c_int))?;
    }

    /// `MPI_Cart_get`.
    active fn cart_get = "MPI_Cart_get"(
        comm: CComm<A>, maxdims: c_int, dims: *mut c_int, periods: *mut c_int, coords: *mut c_int,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get(dec::<A, _>(comm))?;
        let most = not_negative(maxdims, Class::Dims, "maxdims")?;
        topo::with_cart(&comm, |cart| {
            let periodic: Vec<i32> = cart.periodic.iter().map(|&periodic| i32::from(periodic)).collect();
            prefix(dims, most, &cart.dims, "dims")?;
            prefix(periods, most, &periodic, "periods")?;
            prefix(coords, most, &cart.coords(comm.rank as i32)?, "coords")
        })?;
    }

    /// `MPI_Cart_rank`.
    active fn cart_rank = "MPI_Cart_rank"(comm: CComm<A>, coords: *const c_int, rank: *mut c_int)
        for on_comm::<A>(comm) =>
    {
        let comm = comm::get(dec::<A, _>(comm))?;
        not_null(rank, "rank")?;
        *rank = topo::with_cart(&comm, |cart| cart.rank(array(coords, cart.dims.len(), "coords")?))?;
    }

    /// `MPI_Cart_coords`.
    active fn cart_coords = "MPI_Cart_coords"(comm: CComm<A>, rank: c_int, maxdims: c_int, coords: *mut c_int)
        for on_comm::<A>(comm) =>
    {
        let comm = comm::get(dec::<A, _>(comm))?;
        let most = not_negative(maxdims, Class::Dims, "maxdims")?;
        topo::with_cart(&comm, |cart| prefix(coords, most, &cart.coords(rank)?, "coords"))?;
    }

    /// `MPI_Cart_shift`.
    active fn cart_shift = "MPI_Cart_shift"(
        comm: CComm<A>, direction: c_int, displacement: c_int, source: *mut c_int, destination: *mut c_int,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get(dec::<A, _>(comm))?;
        not_null(source, "rank_source")?;
        not_null(destination, "rank_dest")?;
        let (from, to) = topo::with_cart(&comm, |cart| cart.shift(comm.rank as i32, direction, displacement))?;
        (*source, *destination) = (A::rank_out(from), A::rank_out(to));
    }

    /// `MPI_Cart_sub`.
    active fn cart_sub = "MPI_Cart_sub"(comm: CComm<A>, remain_dims: *const c_int, newcomm: *mut CComm<A>)
        for on_comm::<A>(comm) =>
    {
        let comm = intra::<A>(comm)?;
        not_null(newcomm, "newcomm")?;
        let keep = topo::with_cart(&comm, |cart| logicals(remain_dims, cart.dims.len(), "remain_dims"))?;
        *newcomm = made::<A>(Some(cart::sub(&comm, &keep)?));
    }

    /// `MPI_Cart_map`.
    active fn cart_map = "MPI_Cart_map"(
        comm: CComm<A>, ndims: c_int, dims: *const c_int, periods: *const c_int, newrank: *mut c_int,
    ) for on_comm::<A>(comm) => {
        let comm = intra::<A>(comm)?;
        let (dims, periods) = shape(ndims, dims, periods)?;
        not_null(newrank, "newrank")?;
        *newrank = A::rank_out(cart::map(&comm, dims, &periods)?);
    }

    /// `MPI_Graph_create`; ranks are not reordered.
    active fn graph_create = "MPI_Graph_create"(
        comm: CComm<A>, nnodes: c_int, index: *const c_int, edges: *const c_int, _reorder: c_int,
        newcomm: *mut CComm<A>,
    ) for on_comm::<A>(comm) => {
        let comm = intra::<A>(comm)?;
        let graph = described(nnodes, index, edges)?;
        not_null(newcomm, "comm_graph")?;
        *newcomm = made::<A>(graph::create(&comm, graph)?);
    }

    /// `MPI_Graphdims_get`.
    active fn graphdims_get = "MPI_Graphdims_get"(comm: CComm<A>, nnodes: *mut c_int, nedges: *mut c_int)
        for on_comm::<A>(comm) =>
    {
        let comm = comm::get(dec::<A, _>(comm))?;
        not_null(nnodes, "nnodes")?;
        not_null(nedges, "nedges")?;
        (*nnodes, *nedges) =
            topo::with_graph(&comm, |graph| Ok((graph.index.len() as c_int, graph.edges.len() as c_int)))?;
    }

    /// `MPI_Graph_get`.
    active fn graph_get = "MPI_Graph_get"(
        comm: CComm<A>, maxindex: c_int, maxedges: c_int, index: *mut c_int, edges: *mut c_int,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get(dec::<A, _>(comm))?;
        let most_nodes = not_negative(maxindex, Class::Arg, "maxindex")?;
        let most_edges = not_negative(maxedges, Class::Arg, "maxedges")?;
        topo::with_graph(&comm, |graph| {
            prefix(index, most_nodes, &graph.index, "index")?;
            prefix(edges, most_edges, &graph.edges, "edges")
        })?;
    }

    /// `MPI_Graph_neighbors_count`.
    active fn graph_neighbors_count = "MPI_Graph_neighbors_count"(comm: CComm<A>, rank: c_int, count: *mut c_int)
        for on_comm::<A>(comm) =>
    {
        let comm = comm::get(dec::<A, _>(comm))?;
        not_null(count, "nneighbors")?;
        *count = topo::with_graph(&comm, |graph| Ok(graph.neighbours(rank)?.len() as c_int))?;
    }

    /// `MPI_Graph_neighbors`.
    active fn graph_neighbors = "MPI_Graph_neighbors"(
        comm: CComm<A>, rank: c_int, maxneighbors: c_int, neighbors: *mut c_int,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get(dec::<A, _>(comm))?;
        let most = not_negative(maxneighbors, Class::Arg, "maxneighbors")?;
        topo::with_graph(&comm, |graph| prefix(neighbors, most, graph.neighbours(rank)?, "neighbors"))?;
    }

    /// `MPI_Graph_map`.
    active fn graph_map = "MPI_Graph_map"(
        comm: CComm<A>, nnodes: c_int, index: *const c_int, edges: *const c_int, newrank: *mut c_int,
    ) for on_comm::<A>(comm) => {
        let comm = intra::<A>(comm)?;
        let graph = described(nnodes, index, edges)?;
        not_null(newrank, "newrank")?;
        *newrank = A::rank_out(graph::map(&comm, &graph)?);
    }

    /// `MPI_Dist_graph_create`; ranks are not reordered.
    active fn dist_graph_create = "MPI_Dist_graph_create"(
        comm: CComm<A>, n: c_int, sources: *const c_int, degrees: *const c_int, destinations: *const c_int,
        weights: *const c_int, info: CInfo<A>, _reorder: c_int, newcomm: *mut CComm<A>,
    ) for on_comm::<A>(comm) => {
        let comm = intra::<A>(comm)?;
        let count = not_negative(n, Class::Arg, "n")?;
        let (sources, degrees) = (array(sources, count, "sources")?, array(degrees, count, "degrees")?);
        let mut total: usize = 0;
        for &degree in degrees {
            total += not_negative(degree, Class::Arg, "degrees")?;
        }
        let destinations = array(destinations, total, "destinations")?;
        let (weights, weighted) = weights_at::<A>(weights, total, "weights")?;
        graph::check_ranks(&comm, sources, "sources")?;
        graph::check_ranks(&comm, destinations, "destinations")?;
        let hints = info::hints(dec::<A, _>(info))?;
        not_null(newcomm, "comm_dist_graph")?;

        let of_each = sources.iter().zip(degrees).flat_map(|(&source, &degree)| (0..degree).map(move |_| source));
        let edges: Vec<topo::Edge> = (of_each.zip(destinations).enumerate())
            .map(|(index, (source, &destination))| topo::Edge {
                source,
                destination,
                weight: weights.get(index).copied().unwrap_or(1),
            })
            .collect();
        let created = graph::create_distributed(&comm, &edges, weighted)?;
        created.add_hints(&hints);
        *newcomm = made::<A>(Some(created));
    }

    /// `MPI_Dist_graph_create_adjacent`; ranks are not reordered.
    active fn dist_graph_create_adjacent = "MPI_Dist_graph_create_adjacent"(
        comm: CComm<A>, indegree: c_int, sources: *const c_int, sourceweights: *const c_int, outdegree: c_int,
        destinations: *const c_int, destweights: *const c_int, info: CInfo<A>, _reorder: c_int,
        newcomm: *mut CComm<A>,
    ) for on_comm::<A>(comm) => {
        let comm = intra::<A>(comm)?;
        let incoming = not_negative(indegree, Class::Arg, "indegree")?;
        let outgoing = not_negative(outdegree, Class::Arg, "outdegree")?;
        let (source_weights, weighted_in) = weights_at::<A>(sourceweights, incoming, "sourceweights")?;
        let (destination_weights, weighted_out) = weights_at::<A>(destweights, outgoing, "destweights")?;
        if weighted_in != weighted_out {
            return fail(Class::Arg, "one of sourceweights and destweights is MPI_UNWEIGHTED, the other is not");
        }
        let graph = Distributed {
            sources: array(sources, incoming, "sources")?.to_vec(),
            source_weights: source_weights.to_vec(),
            destinations: array(destinations, outgoing, "destinations")?.to_vec(),
            destination_weights: destination_weights.to_vec(),
            weighted: weighted_in,
        };
        let hints = info::hints(dec::<A, _>(info))?;
        not_null(newcomm, "comm_dist_graph")?;
        let created = graph::create_adjacent(&comm, graph)?;
        created.add_hints(&hints);
        *newcomm = made::<A>(Some(created));
    }

    /// `MPI_Dist_graph_neighbors_count`.
    active fn dist_graph_neighbors_count = "MPI_Dist_graph_neighbors_count"(
        comm: CComm<A>, indegree: *mut c_int, outdegree: *mut c_int, weighted: *mut c_int,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get(dec::<A, _>(comm))?;
        not_null(indegree, "indegree")?;
        not_null(outdegree, "outdegree")?;
        not_null(weighted, "weighted")?;
        topo::with_distributed(&comm, |graph| {
            *indegree = graph.sources.len() as c_int;
            *outdegree = graph.destinations.len() as c_int;
            *weighted = c_int::from(graph.weighted);
            Ok(())
        })?;
    }

    /// `MPI_Dist_graph_neighbors`.
    active fn dist_graph_neighbors = "MPI_Dist_graph_neighbors"(
        comm: CComm<A>, maxindegree: c_int, sources: *mut c_int, sourceweights: *mut c_int, maxoutdegree: c_int,
        destinations: *mut c_int, destweights: *mut c_int,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get(dec::<A, _>(comm))?;
        let incoming = not_negative(maxindegree, Class::Arg, "maxindegree")?;
        let outgoing = not_negative(maxoutdegree, Class::Arg, "maxoutdegree")?;
        topo::with_distributed(&comm, |graph| {
            prefix(sources, incoming, &graph.sources, "sources")?;
            weights_prefix::<A>(sourceweights, incoming, &graph.source_weights, "sourceweights")?;
            prefix(destinations, outgoing, &graph.destinations, "destinations")?;
            weights_prefix::<A>(destweights, outgoing, &graph.destination_weights, "destweights")
        })?;
    }

    /// `MPI_Topo_test`.
    active fn topo_test = "MPI_Topo_test"(comm: CComm<A>, status: *mut c_int) for on_comm::<A>(comm) => {
        let comm = comm::get(dec::<A, _>(comm))?;
        not_null(status, "status")?;
        *status = match topo::kind(&comm) {
            vmpi_core::consts::UNDEFINED => A::rank_out(vmpi_core::consts::UNDEFINED),
            kind => A::topology_out(kind),
        };
    }
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_topo {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::topo];
            fn MPI_Dims_create = dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) -> c_int;
            fn MPI_Cart_create = cart_create(comm: $crate::abi::CComm<$A>, ndims: c_int, dims: *const c_int, periods: *const c_int, reorder: c_int, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Cartdim_get = cartdim_get(comm: $crate::abi::CComm<$A>, ndims: *mut c_int) -> c_int;
            fn MPI_Cart_get = cart_get(comm: $crate::abi::CComm<$A>, maxdims: c_int, dims: *mut c_int, periods: *mut c_int, coords: *mut c_int) -> c_int;
            fn MPI_Cart_rank = cart_rank(comm: $crate::abi::CComm<$A>, coords: *const c_int, rank: *mut c_int) -> c_int;
            fn MPI_Cart_coords = cart_coords(comm: $crate::abi::CComm<$A>, rank: c_int, maxdims: c_int, coords: *mut c_int) -> c_int;
            fn MPI_Cart_shift = cart_shift(comm: $crate::abi::CComm<$A>, direction: c_int, displacement: c_int, source: *mut c_int, destination: *mut c_int) -> c_int;
            fn MPI_Cart_sub = cart_sub(comm: $crate::abi::CComm<$A>, remain_dims: *const c_int, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Cart_map = cart_map(comm: $crate::abi::CComm<$A>, ndims: c_int, dims: *const c_int, periods: *const c_int, newrank: *mut c_int) -> c_int;
            fn MPI_Graph_create = graph_create(comm: $crate::abi::CComm<$A>, nnodes: c_int, index: *const c_int, edges: *const c_int, reorder: c_int, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Graphdims_get = graphdims_get(comm: $crate::abi::CComm<$A>, nnodes: *mut c_int, nedges: *mut c_int) -> c_int;
            fn MPI_Graph_get = graph_get(comm: $crate::abi::CComm<$A>, maxindex: c_int, maxedges: c_int, index: *mut c_int, edges: *mut c_int) -> c_int;
            fn MPI_Graph_neighbors_count = graph_neighbors_count(comm: $crate::abi::CComm<$A>, rank: c_int, count: *mut c_int) -> c_int;
            fn MPI_Graph_neighbors = graph_neighbors(comm: $crate::abi::CComm<$A>, rank: c_int, maxneighbors: c_int, neighbors: *mut c_int) -> c_int;
            fn MPI_Graph_map = graph_map(comm: $crate::abi::CComm<$A>, nnodes: c_int, index: *const c_int, edges: *const c_int, newrank: *mut c_int) -> c_int;
            fn MPI_Dist_graph_create = dist_graph_create(comm: $crate::abi::CComm<$A>, n: c_int, sources: *const c_int, degrees: *const c_int, destinations: *const c_int, weights: *const c_int, info: $crate::abi::CInfo<$A>, reorder: c_int, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Dist_graph_create_adjacent = dist_graph_create_adjacent(comm: $crate::abi::CComm<$A>, indegree: c_int, sources: *const c_int, sourceweights: *const c_int, outdegree: c_int, destinations: *const c_int, destweights: *const c_int, info: $crate::abi::CInfo<$A>, reorder: c_int, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Dist_graph_neighbors_count = dist_graph_neighbors_count(comm: $crate::abi::CComm<$A>, indegree: *mut c_int, outdegree: *mut c_int, weighted: *mut c_int) -> c_int;
            fn MPI_Dist_graph_neighbors = dist_graph_neighbors(comm: $crate::abi::CComm<$A>, maxindegree: c_int, sources: *mut c_int, sourceweights: *mut c_int, maxoutdegree: c_int, destinations: *mut c_int, destweights: *mut c_int) -> c_int;
            fn MPI_Topo_test = topo_test(comm: $crate::abi::CComm<$A>, status: *mut c_int) -> c_int;
        }
    };
}
