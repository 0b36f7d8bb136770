# Copyright the vmpi contributors. SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack.package import *


class Vmpi(Package):
    """MPI that runs more ranks than cores: vmpirun starts unmodified programs of Open MPI, MPICH and the MPI-5 standard
    ABI with several ranks on each core, each a process."""

    # Where a maintainer has put what `cargo xtask dist` makes: spack install vmpi, with this directory as a mirror, or
    # url set to the place.
    url = "file:///vmpi-@VERSION@.tar.gz"

    license("Apache-2.0 OR MIT", checked_by="vmpi")

    version("@VERSION@", sha256="@SOURCE_SHA256@")

    provides("mpi@:5.0")

    depends_on("c", type="build")
    depends_on("fortran", type="build")
    depends_on("rust@1.95:", type="build")

    conflicts("platform=darwin", msg="vmpi needs Linux")
    requires("target=x86_64:", msg="vmpi needs x86-64")

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        cargo("xtask", "install", "--prefix", prefix)

    def setup_run_environment(self, env):
        env.prepend_path("PATH", self.prefix.lib.vmpi.bin)

    def setup_dependent_build_environment(self, env, dependent_spec):
        self.setup_run_environment(env)
        env.set("MPICC", join_path(self.prefix.bin, "vmpicc"))
        env.set("MPICXX", join_path(self.prefix.bin, "vmpicxx"))
        env.set("MPIFC", join_path(self.prefix.bin, "vmpifort"))
        env.set("MPIF90", join_path(self.prefix.bin, "vmpifort"))

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.bin, "vmpicc")
        self.spec.mpicxx = join_path(self.prefix.bin, "vmpicxx")
        self.spec.mpifc = join_path(self.prefix.bin, "vmpifort")
        self.spec.mpif77 = join_path(self.prefix.bin, "vmpifort")
