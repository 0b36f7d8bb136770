"""A molecule of hydrogen in a box, with plane waves, by GPAW."""

from ase import Atoms
from gpaw import GPAW, PW
from gpaw.mpi import world

atoms = Atoms("H2", positions=[(0, 0, 0), (0, 0, 0.74)], cell=(5, 5, 5), pbc=True)
atoms.calc = GPAW(mode=PW(250), txt=None, kpts=(2, 2, 2))
energy = atoms.get_potential_energy()
if world.rank == 0:
    print(f"energy {energy:.6f} eV, {world.size} ranks")
