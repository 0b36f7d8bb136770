"""Make tests/data/mpi4py-allowed.tsv of runs of suite.py: table.py DIRECTORY... > mpi4py-allowed.tsv

Each directory is called WHO.RANKS; WHO is openmpi, mpich or mpiabi for vmpi with that ABI, and peer-openmpi, peer-mpich or
peer-mpiabi for Open MPI, MPICH and MPICH's library of the standard ABI. A failure is a row only if a peer has it, or if it is in
KNOWN; other failures are printed to standard error, and the result is 1.
"""

import os
import sys
from collections import defaultdict

ABIS = ("openmpi", "mpich", "mpiabi")
# What is missing and said to be (README.md): test, ABIs, reason.
KNOWN = [
]
REASONS = {
    "test_mpiabi.TestMPIABI.testGetFortranInfo": "the wheel is built without some Fortran types that the library says it has",
}

seen = {"fail": defaultdict(set), "skip": defaultdict(set)}
for directory in sys.argv[1:]:
    who = os.path.basename(directory.rstrip("/")).rsplit(".", 1)[0]
    for file in os.listdir(directory):
        if not file.endswith(".tsv"):
            continue
        for line in open(os.path.join(directory, file), encoding="utf-8"):
            what, test, why = (line.rstrip("\n").split("\t", 2) + ["", ""])[:3]
            if what == "fail":
                seen["fail"][test, REASONS.get(test, "")].add(who)
            elif what == "skip":
                seen["skip"][test, why].add(who)


def row(what, test, reason, whos):
    abis = ",".join(abi for abi in ABIS if abi in whos)
    peers = ",".join(abi for abi in ABIS if "peer-" + abi in whos) or "-"
    if abis:
        print(what, abis, test, reason, peers, sep="\t")


print("# What may fail or be skipped in mpi4py 4.1.2's test suite: made by tests/mpi4py/table.py, see docs/mpi4py.md.")
print("# what, vmpi's ABIs, test, reason, the same under Open MPI 5.0.11 (openmpi), MPICH 5.0.2 (mpich; mpiabi: its standard ABI)")
wrong = 0
for test, abis, reason in KNOWN:
    print("fail", ",".join(abis), test, reason, "-", sep="\t")
for (test, reason), whos in sorted(seen["fail"].items()):
    known = {abi for name, abis, _ in KNOWN for abi in abis if test.startswith(name.rstrip("*"))}
    excused = {abi for abi in ABIS if "peer-" + abi in whos} | known
    for abi in sorted(whos & set(ABIS) - excused):
        print(f"no peer fails {test} ({abi})", file=sys.stderr)
        wrong = 1
    row("fail", test, reason, (whos & excused) - known | {who for who in whos if who.startswith("peer-")})
for (test, reason), whos in sorted(seen["skip"].items()):
    row("skip", test, reason, whos)
sys.exit(wrong)
