"""Each rank says who it is, and rank 0 adds them up: pip install mpi4py."""
from mpi4py import MPI

world = MPI.COMM_WORLD
print(f"Python: rank {world.rank} of {world.size}")
total = world.reduce(world.rank, root=0)
if world.rank == 0:
    print(f"Python: the ranks add up to {total}")
