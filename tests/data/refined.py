"""A box of tetrahedra, refined and dealt out anew, and edge elements on it: dolfinx finds out by NBX who exchanges what with whom."""
from mpi4py import MPI
from dolfinx import fem, mesh

world = MPI.COMM_WORLD
box = mesh.create_unit_cube(world, 6, 6, 6)
box.topology.create_entities(1)
finer = mesh.refine(box, redistribute=True)
space = fem.FunctionSpace(finer, ("N1curl", 1))
cells, unknowns = finer.topology.index_map(3).size_global, space.dofmap.index_map.size_global
if world.rank == 0:
    print("cells", cells, "unknowns", unknowns)
