# Rmpi: objects around a ring, and what R makes of reductions; then, if there is one rank, slaves that it spawns.
library(Rmpi)
rank <- mpi.comm.rank(0)
size <- mpi.comm.size(0)
total <- mpi.allreduce(as.double(rank + 1), type = 2, op = "sum", comm = 0)
stopifnot(total == size * (size + 1) / 2)
all <- mpi.allgather.Robj(list(rank = rank, text = strrep("x", rank * 1000)), comm = 0)
stopifnot(length(all) == 2 * size)
if (size > 1) {
    mpi.isend.Robj(list(from = rank, m = matrix(rank, 30, 30)), (rank + 1) %% size, 5, comm = 0)
    got <- mpi.recv.Robj(mpi.any.source(), 5, comm = 0)
    stopifnot(got$from == (rank - 1) %% size, sum(got$m) == 900 * got$from)
    mpi.wait(0)
    if (rank == 0) cat("ring of", size, "ranks, sum", total, "\n")
} else {
    mpi.spawn.Rslaves(nslaves = 3, quiet = TRUE)
    sums <- mpi.applyLB(1:40, function(k) sum(sqrt(seq_len(k * 1000))))
    squares <- mpi.parSapply(1:12, function(k) k^2)
    cat("slaves: sum", format(sum(unlist(sums)), digits = 12), "squares", squares, "\n")
    mpi.close.Rslaves(dellog = FALSE)
}
invisible(mpi.quit())
