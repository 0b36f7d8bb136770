# Parallel HDF5: chunked and contiguous datasets, collective and independent accesses, attributes; every rank reads back what
# another has written. The file is looked at by the caller.
import os, sys
import numpy as np
from mpi4py import MPI
os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"
import h5py
comm, path = MPI.COMM_WORLD, sys.argv[1]
r, n = comm.rank, comm.size
assert h5py.get_config().mpi
def value(rank, shape, seed):
    return (np.arange(np.prod(shape)).reshape(shape) * (seed + 1) + 1000 * rank).astype("i4")
with h5py.File(path, "w", driver="mpio", comm=comm) as f:
    f.attrs["title"] = "written by all"
    rows = f.create_dataset("rows", (12 * n, 50), "i4")
    columns = f.create_dataset("group/columns", (40, 7 * n), "i4")
    cyclic = f.create_dataset("group/cyclic", (60 * n,), "f8")
    chunked = f.create_dataset("group/chunked", (20 * n, 33), "i4", chunks=(8, 9))
    alone = f.create_dataset("alone", (100 * n,), "i4")
    with rows.collective:
        rows[12 * r:12 * (r + 1), :] = value(r, (12, 50), 1)
    with columns.collective:
        columns[:, 7 * r:7 * (r + 1)] = value(r, (40, 7), 2)
    with cyclic.collective:
        cyclic[r::n] = np.arange(60) / 7 + r
    with chunked.collective:
        chunked[20 * r:20 * (r + 1), :] = value(r, (20, 33), 3)
    alone[100 * r:100 * (r + 1)] = value(r, (100,), 4)
    f.flush()
comm.Barrier()
o = (r + 1) % n
with h5py.File(path, "r", driver="mpio", comm=comm) as f:
    assert f.attrs["title"] == "written by all"
    d = f["rows"]
    with d.collective:
        assert (d[12 * o:12 * (o + 1), :] == value(o, (12, 50), 1)).all()
    d = f["group/columns"]
    with d.collective:
        assert (d[:, 7 * o:7 * (o + 1)] == value(o, (40, 7), 2)).all()
    d = f["group/cyclic"]
    with d.collective:
        assert (d[o::n] == np.arange(60) / 7 + o).all()
    d = f["group/chunked"]
    with d.collective:
        assert (d[20 * o:20 * (o + 1), :] == value(o, (20, 33), 3)).all()
    assert (f["alone"][100 * o:100 * (o + 1)] == value(o, (100,), 4)).all()
    whole = f["group/cyclic"][...]
    assert whole.shape == (60 * n,) and whole[1] == (0 / 7 + 1 if n > 1 else 1 / 7)
if r == 0:
    print("hdf5 agrees")
