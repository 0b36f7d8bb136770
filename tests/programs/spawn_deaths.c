/* Spawned ranks that end badly, and states to be killed in: spawn_deaths HOW. Two ranks spawn three; each that has come so far
 * prints "ready NUMBER PID", the spawned ones with numbers 2, 3 and 4. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size, remote, v = 0;
    MPI_Comm parent, comm;
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *how = argc > 1 ? argv[1] : "recv";
    if (!strcmp(how, "plain")) return 0; /* a program without MPI */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        char *args[] = {(char *)how, NULL};
        if (!strcmp(how, "loop")) {
            char *short_life[] = {"brief", NULL};
            printf("ready %d %d\n", rank, (int)getpid());
            for (;;) {
                MPI_Comm_spawn(argv[0], short_life, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm, MPI_ERRCODES_IGNORE);
                MPI_Comm_disconnect(&comm);
            }
        }
        MPI_Comm_spawn(argv[0], args, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm, MPI_ERRCODES_IGNORE);
        printf("ready %d %d\n", rank, (int)getpid());
    } else {
        comm = parent;
        if (!strcmp(how, "brief")) {
            MPI_Comm_disconnect(&comm);
            MPI_Finalize();
            return 0;
        }
        MPI_Comm_remote_size(parent, &remote);
        printf("ready %d %d\n", remote + rank, (int)getpid());
        if (!strcmp(how, "exit3") && rank == 1) exit(3);
        if (!strcmp(how, "nofinalize") && rank == 1) _exit(0);
        if (!strcmp(how, "abort7") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    }
    if (!strcmp(how, "compute")) for (volatile unsigned long x = 0;; x++) {}
    if (!strcmp(how, "accept")) {
        char port[MPI_MAX_PORT_NAME];
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm);
    }
    if (!strcmp(how, "outlive")) {
        /* The parents end; their children live on for a while and say so. */
        if (parent != MPI_COMM_NULL) {
            usleep(300000);
            printf("child %d says goodbye\n", rank);
        }
        MPI_Finalize();
        return 0;
    }
    MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, 99, comm, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
