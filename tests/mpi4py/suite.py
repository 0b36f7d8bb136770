"""Run mpi4py's own test suite and write what became of each test: suite.py MAIN DIRECTORY ARGUMENTS...

Each rank writes DIRECTORY/RANK.tsv while it goes, so that a run that hangs tells where:

    start    TEST  seconds of wall time, seconds of this process's CPU time
    ok | skip | fail    TEST  reason (a subtest that fails is a `fail` of its test)
    end      0 or 1, seconds, seconds
"""

import importlib.abc
import importlib.util
import os
import runpy
import sys
import time
import unittest

main, directory = sys.argv[1:3]
sys.argv[:] = [main, *sys.argv[3:]]
sys.path.insert(0, os.path.dirname(os.path.abspath(main)))
names = ("VMPI_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
rank = next((os.environ[name] for name in names if name in os.environ), "0")
log = open(os.path.join(directory, f"{rank}.tsv"), "w", buffering=1)
begin = time.time()


class Vendor(importlib.abc.MetaPathFinder):
    """Says that this is vmpi: MPI_Get_library_version begins as the library's whose ABI it is, and the suite leaves out what fails there."""

    def find_spec(self, name, path, target=None):
        if name != "mpi4py.MPI":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module.get_vendor = lambda: ("vmpi", (0, 1, 0))

        spec.loader.exec_module = exec_module
        return spec


if "VMPI_RANK" in os.environ:
    sys.meta_path.insert(0, Vendor())


def line(what, test, why):
    log.write(f"{what}\t{test}\t{why}\n")


def clocks():
    return f"{time.time() - begin:.3f}\t{time.process_time():.3f}"


def sentence(error):
    return " ".join(f"{error[0].__name__}: {error[1]}".split())[:200]


class Result(unittest.TextTestResult):
    def startTest(self, test):
        line("start", test.id(), clocks())
        super().startTest(test)

    def addSuccess(self, test):
        line("ok", test.id(), "")
        super().addSuccess(test)

    def addSkip(self, test, reason):
        line("skip", test.id(), " ".join(str(reason).split()))
        super().addSkip(test, reason)

    def addError(self, test, err):
        line("fail", test.id(), sentence(err))
        super().addError(test, err)

    def addFailure(self, test, err):
        line("fail", test.id(), sentence(err))
        super().addFailure(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            line("fail", test.id(), sentence(err))
        super().addSubTest(test, subtest, err)

    def addUnexpectedSuccess(self, test):
        line("fail", test.id(), "unexpected success")
        super().addUnexpectedSuccess(test)


unittest.TextTestRunner.resultclass = Result
code = 0
try:
    runpy.run_path(main, run_name="__main__")
except SystemExit as ended:
    code = ended.code
line("end", int(bool(code)), clocks())
sys.exit(code)
