#!/bin/sh
# libgomp of GCC 12 (Debian 12's libgomp1 12.2.0-14+deb12u1) and libiomp5 of PyPI's intel-openmp 2025.3.1; needs two CPUs, no root.
# A Python process loads both, as one does whose numpy has MKL and whose other wheels were built by GCC. OMP_PROC_BIND=true. Expected: binding
# begins with the first parallel region, and each runtime sees the CPUs of the process. Seen: libgomp binds the thread that loads it to its
# first place as soon as it is loaded, without any parallel region. From then on the process has one CPU for all that ask the kernel: libiomp5
# loaded after it has one thread instead of all, with no word; os.sched_getaffinity says one, and each thread and child process that is
# started has that one. If libiomp5 was loaded and asked before, both have all their threads. So the number of threads depends on the order of
# imports. OMP_PLACES=cores and GOMP_CPU_AFFINITY do the same; without them all is well. Whoever starts a hybrid program must not count CPUs
# inside it after such a library came, and not set these variables for programs with two runtimes.
# Seen: the seven lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/venv"
"$d/venv/bin/pip" install -q --disable-pip-version-check intel-openmp==2025.3.1
cat > "$d/load.py" <<'P'
import ctypes
import os
import subprocess
import sys

def cpus(number):
    return "one" if number == 1 else "all" if number == everything else "some"

everything = len(os.sched_getaffinity(0))
said = []
for library in sys.argv[1:]:
    runtime = ctypes.CDLL(library)
    loaded = cpus(len(os.sched_getaffinity(0)))
    said.append(f"{os.path.basename(library).split('.')[0]} loaded: {loaded} of the CPUs, {cpus(runtime.omp_get_max_threads())} threads")
child = subprocess.run([sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"], stdout=subprocess.PIPE, text=True)
print("; ".join(said) + f"; a child: {cpus(int(child.stdout))}")
P
[ "$(nproc)" -ge 2 ] || { echo "needs two CPUs" >&2; exit 2; }
gomp=libgomp.so.1
iomp=$d/venv/lib/libiomp5.so
unset OMP_NUM_THREADS OMP_PROC_BIND OMP_PLACES GOMP_CPU_AFFINITY || true
{
    echo "without: $("$d/venv/bin/python" "$d/load.py" $gomp "$iomp")"
    for set in OMP_PROC_BIND=true OMP_PLACES=cores GOMP_CPU_AFFINITY=0-1; do
        echo "$set: $(env $set "$d/venv/bin/python" "$d/load.py" $gomp "$iomp")"
        echo "$set: $(env $set "$d/venv/bin/python" "$d/load.py" "$iomp" $gomp)"
    done
} | tee "$d/seen"
cmp - "$d/seen" <<'S'
without: libgomp loaded: all of the CPUs, all threads; libiomp5 loaded: all of the CPUs, all threads; a child: all
OMP_PROC_BIND=true: libgomp loaded: one of the CPUs, all threads; libiomp5 loaded: one of the CPUs, one threads; a child: one
OMP_PROC_BIND=true: libiomp5 loaded: all of the CPUs, all threads; libgomp loaded: one of the CPUs, all threads; a child: one
OMP_PLACES=cores: libgomp loaded: one of the CPUs, all threads; libiomp5 loaded: one of the CPUs, one threads; a child: one
OMP_PLACES=cores: libiomp5 loaded: all of the CPUs, all threads; libgomp loaded: one of the CPUs, all threads; a child: one
GOMP_CPU_AFFINITY=0-1: libgomp loaded: one of the CPUs, all threads; libiomp5 loaded: one of the CPUs, one threads; a child: one
GOMP_CPU_AFFINITY=0-1: libiomp5 loaded: all of the CPUs, all threads; libgomp loaded: one of the CPUs, all threads; a child: one
S
