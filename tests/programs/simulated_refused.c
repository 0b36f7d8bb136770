/* What there is not in virtual time: simulated_refused spawn|port|threads. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "threads";
    int rank, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(what, "spawn")) {
        MPI_Comm children;
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    } else if (!strcmp(what, "port")) {
        char name[MPI_MAX_PORT_NAME];
        MPI_Open_port(MPI_INFO_NULL, name);
    } else if (rank == 0) {
        printf("%s\n", provided == MPI_THREAD_SERIALIZED ? "serialized" : "another level");
    }
    MPI_Finalize();
    return 0;
}
