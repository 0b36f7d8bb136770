//! Datatypes, packing and reduction operations, as Fortran calls them.

/// Datatypes and packing.
#[macro_export]
macro_rules! f_table_datatype {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn address ADDRESS = c::get_address(location: Location, address: AintAsInt);
            fn get_address GET_ADDRESS = c::get_address(location: Location, address: Aints);
            #[counts]
            fn get_count GET_COUNT = c::get_count(status: Status, ty: In<h::Datatype>, count: Nums);
            #[counts]
            fn get_elements GET_ELEMENTS = c::get_elements(status: Status, ty: In<h::Datatype>, count: Nums);
            fn get_elements_x GET_ELEMENTS_X = c::get_elements(status: Status, ty: In<h::Datatype>, count: Counts);
            #[counts]
            fn pack PACK = c::pack(inbuf: Buf, incount: Num, ty: In<h::Datatype>, outbuf: Buf, outsize: Num,
                position: Nums, comm: In<h::Comm>);
            #[counts]
            fn pack_external PACK_EXTERNAL = c::pack_external(datarep: StrIn[datarep_len], inbuf: Buf, incount: Num,
                ty: In<h::Datatype>, outbuf: Buf, outsize: Aint, position: Aints; datarep_len);
            #[counts]
            fn pack_external_size PACK_EXTERNAL_SIZE = c::pack_external_size(datarep: StrIn[datarep_len], incount: Num,
                ty: In<h::Datatype>, size: Aints; datarep_len);
            #[counts]
            fn pack_size PACK_SIZE = c::pack_size(incount: Num, ty: In<h::Datatype>, comm: In<h::Comm>, size: Nums);
            #[counts]
            fn status_set_elements STATUS_SET_ELEMENTS = c::status_set_elements(status: Status, ty: In<h::Datatype>,
                count: Num);
            fn status_set_elements_x STATUS_SET_ELEMENTS_X = c::status_set_elements(status: Status, ty: In<h::Datatype>,
                count: Count);
            fn type_commit TYPE_COMMIT = c::type_commit(ty: InOut<h::Datatype>);
            #[counts]
            fn type_contiguous TYPE_CONTIGUOUS = c::type_contiguous(count: Num, oldtype: In<h::Datatype>,
                newtype: Out<h::Datatype>);
            #[counts]
            fn type_create_darray TYPE_CREATE_DARRAY = c::type_create_darray(size: Int, rank: Int, ndims: Int,
                gsizes: Nums, distribs: Ints, dargs: Ints, psizes: Ints, order: Int, oldtype: In<h::Datatype>,
                newtype: Out<h::Datatype>);
            fn type_create_f90_complex TYPE_CREATE_F90_COMPLEX = c::type_create_f90_complex(p: Int, r: Int,
                newtype: Out<h::Datatype>);
            fn type_create_f90_integer TYPE_CREATE_F90_INTEGER = c::type_create_f90_integer(r: Int,
                newtype: Out<h::Datatype>);
            fn type_create_f90_real TYPE_CREATE_F90_REAL = c::type_create_f90_real(p: Int, r: Int,
                newtype: Out<h::Datatype>);
            #[counts]
            fn type_create_hindexed TYPE_CREATE_HINDEXED = c::type_create_hindexed(count: Num, blocklengths: Nums,
                displacements: Aints, oldtype: In<h::Datatype>, newtype: Out<h::Datatype>);
            #[counts]
            fn type_create_hindexed_block TYPE_CREATE_HINDEXED_BLOCK = c::type_create_hindexed_block(count: Num,
                blocklength: Num, displacements: Aints, oldtype: In<h::Datatype>, newtype: Out<h::Datatype>);
            #[counts]
            fn type_create_hvector TYPE_CREATE_HVECTOR = c::type_create_hvector(count: Num, blocklength: Num,
                stride: Aint, oldtype: In<h::Datatype>, newtype: Out<h::Datatype>);
            #[counts]
            fn type_create_indexed_block TYPE_CREATE_INDEXED_BLOCK = c::type_create_indexed_block(count: Num,
                blocklength: Num, displacements: Nums, oldtype: In<h::Datatype>, newtype: Out<h::Datatype>);
            fn type_create_resized TYPE_CREATE_RESIZED = c::type_create_resized(oldtype: In<h::Datatype>, lb: Aint,
                extent: Aint, newtype: Out<h::Datatype>);
            #[counts]
            fn type_create_struct TYPE_CREATE_STRUCT = c::type_create_struct(count: Num, blocklengths: Nums,
                displacements: Aints, types: Ins<h::Datatype>[n(count)], newtype: Out<h::Datatype>);
            #[counts]
            fn type_create_subarray TYPE_CREATE_SUBARRAY = c::type_create_subarray(ndims: Int, sizes: Nums,
                subsizes: Nums, starts: Nums, order: Int, oldtype: In<h::Datatype>, newtype: Out<h::Datatype>);
            fn type_dup TYPE_DUP = c::type_dup(oldtype: In<h::Datatype>, newtype: Out<h::Datatype>);
            fn type_extent TYPE_EXTENT = c::type_extent(ty: In<h::Datatype>, extent: AintAsInt);
            fn type_free TYPE_FREE = c::type_free(ty: InOut<h::Datatype>);
            fn type_get_contents TYPE_GET_CONTENTS = c::type_get_contents(ty: In<h::Datatype>, max_integers: Int,
                max_addresses: Int, max_types: Int, integers: Ints, addresses: Aints,
                types: Outs<h::Datatype>[n(max_types)]);
            fn type_get_envelope TYPE_GET_ENVELOPE = c::type_get_envelope(ty: In<h::Datatype>, num_integers: Ints,
                num_addresses: Ints, num_types: Ints, combiner: Ints);
            fn type_get_extent TYPE_GET_EXTENT = c::type_get_extent(ty: In<h::Datatype>, lb: Aints, extent: Aints);
            fn type_get_extent_x TYPE_GET_EXTENT_X = c::type_get_extent(ty: In<h::Datatype>, lb: Counts,
                extent: Counts);
            fn type_get_name TYPE_GET_NAME = c::type_get_name(ty: In<h::Datatype>, type_name: StrOut[type_name_len],
                resultlen: Ints; type_name_len);
            fn type_get_true_extent TYPE_GET_TRUE_EXTENT = c::type_get_true_extent(ty: In<h::Datatype>, true_lb: Aints,
                true_extent: Aints);
            fn type_get_true_extent_x TYPE_GET_TRUE_EXTENT_X = c::type_get_true_extent(ty: In<h::Datatype>,
                true_lb: Counts, true_extent: Counts);
            fn type_hindexed TYPE_HINDEXED = c::type_create_hindexed(count: Int, blocklengths: Ints,
                displacements: IntsAsAints[n(count)], oldtype: In<h::Datatype>, newtype: Out<h::Datatype>);
            fn type_hvector TYPE_HVECTOR = c::type_create_hvector(count: Int, blocklength: Int, stride: IntAsAint,
                oldtype: In<h::Datatype>, newtype: Out<h::Datatype>);
            #[counts]
            fn type_indexed TYPE_INDEXED = c::type_indexed(count: Num, blocklengths: Nums, displacements: Nums,
                oldtype: In<h::Datatype>, newtype: Out<h::Datatype>);
            fn type_lb TYPE_LB = c::type_lb(ty: In<h::Datatype>, displacement: AintAsInt);
            fn type_match_size TYPE_MATCH_SIZE = c::type_match_size(typeclass: Int, size: Int, ty: Out<h::Datatype>);
            fn type_set_name TYPE_SET_NAME = c::type_set_name(ty: In<h::Datatype>, type_name: StrIn[type_name_len];
                type_name_len);
            #[counts]
            fn type_size TYPE_SIZE = c::type_size(ty: In<h::Datatype>, size: Nums);
            fn type_size_x TYPE_SIZE_X = c::type_size(ty: In<h::Datatype>, size: Counts);
            fn type_struct TYPE_STRUCT = c::type_create_struct(count: Int, blocklengths: Ints,
                displacements: IntsAsAints[n(count)], types: Ins<h::Datatype>[n(count)], newtype: Out<h::Datatype>);
            fn type_ub TYPE_UB = c::type_ub(ty: In<h::Datatype>, displacement: AintAsInt);
            #[counts]
            fn type_vector TYPE_VECTOR = c::type_vector(count: Num, blocklength: Num, stride: Num,
                oldtype: In<h::Datatype>, newtype: Out<h::Datatype>);
            #[counts]
            fn unpack UNPACK = c::unpack(inbuf: Buf, insize: Num, position: Nums, outbuf: Buf, outcount: Num,
                ty: In<h::Datatype>, comm: In<h::Comm>);
            #[counts]
            fn unpack_external UNPACK_EXTERNAL = c::unpack_external(datarep: StrIn[datarep_len], inbuf: Buf,
                insize: Aint, position: Aints, outbuf: Buf, outcount: Num, ty: In<h::Datatype>; datarep_len);
        }
    };
}

/// Reduction operations.
#[macro_export]
macro_rules! f_table_op {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn op_commutative OP_COMMUTATIVE = c::op_commutative(op: In<h::Op>, commute: LogicalOut);
            fn op_create OP_CREATE = f::op_create(function: Buf, commute: LogicalIn, op: Out<h::Op>);
            fn op_free OP_FREE = c::op_free(op: InOut<h::Op>);
            #[counts]
            fn reduce_local REDUCE_LOCAL = c::reduce_local(inbuf: Buf, inoutbuf: Buf, count: Num, ty: In<h::Datatype>,
                op: In<h::Op>);
        }
    };
}
