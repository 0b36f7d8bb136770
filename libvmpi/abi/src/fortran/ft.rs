//! vmpi's regions, and fault tolerance, as Fortran calls them. The flag of an agreement is its bits, whatever type the program gives it.

/// What MPICH has.
#[macro_export]
macro_rules! f_table_ft {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpix MPIX];
            fn comm_agree COMM_AGREE = c::comm_agree(comm: In<h::Comm>, flag: Ints);
            fn comm_failure_ack COMM_FAILURE_ACK = c::comm_failure_ack(comm: In<h::Comm>);
            fn comm_failure_get_acked COMM_FAILURE_GET_ACKED = c::comm_failure_get_acked(comm: In<h::Comm>,
                failedgrp: Out<h::Group>);
            fn comm_revoke COMM_REVOKE = c::comm_revoke(comm: In<h::Comm>);
            fn comm_shrink COMM_SHRINK = c::comm_shrink(comm: In<h::Comm>, newcomm: Out<h::Comm>);
        }
    };
}

/// What Open MPI 5 has beyond that.
#[macro_export]
macro_rules! f_table_ft_openmpi {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpix MPIX];
            fn comm_ack_failed COMM_ACK_FAILED = c::comm_ack_failed(comm: In<h::Comm>, num_to_ack: Int, num_acked: Ints);
            fn comm_get_failed COMM_GET_FAILED = c::comm_get_failed(comm: In<h::Comm>, failedgrp: Out<h::Group>);
            fn comm_iagree COMM_IAGREE = c::comm_iagree(comm: In<h::Comm>, flag: Ints, request: Out<h::Request>);
            fn comm_is_revoked COMM_IS_REVOKED = c::comm_is_revoked(comm: In<h::Comm>, flag: LogicalOut);
        }
    };
}

/// Regions, which no other MPI has.
#[macro_export]
macro_rules! f_table_regions {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpix MPIX];
            fn region_begin REGION_BEGIN = c::region_begin(name: StrIn[name_len]; name_len);
            fn region_end REGION_END = c::region_end(name: StrIn[name_len]; name_len);
        }
    };
}
