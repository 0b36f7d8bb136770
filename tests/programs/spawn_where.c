/* Where spawned ranks go, and what is told if they cannot start: spawn_where HOW ... Only rank 0 of the ranks that were started first prints.
 *   host HOST COUNT      COUNT children on HOST (the info key `host`): their nodes
 *   here PROGRAM COUNT   COUNT children of PROGRAM: the error, if there is one, and what a second spawn of this program gives
 *   on HOST PROGRAM      the same with the key `host`
 *   fatal PROGRAM HOST   2 children of PROGRAM on HOST (-: wherever), an error ends the job
 *   spread COUNT         COUNT children wherever they go: their nodes
 *   output COUNT         COUNT children, which print
 *   again ROUNDS COUNT   ROUNDS times COUNT children one after the other: more than there are numbers
 */
#include "t.h"
#include <unistd.h>

static int spawned(const char *program, int count, const char *host, const char *how) {
    char *args[] = {(char *)how, NULL}, name[256];
    int code, length, remote = -1, class = 0, codes[1000];
    MPI_Comm inter;
    MPI_Info info;
    MPI_Info_create(&info);
    if (host) MPI_Info_set(info, "host", host);
    code = MPI_Comm_spawn(program, args, count, info, t_size - 1, MPI_COMM_WORLD, &inter, codes);
    MPI_Info_free(&info);
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
        OK(inter == MPI_COMM_NULL);
        for (int i = 0; i < count; i++) {
            MPI_Error_class(codes[i], &code);
            EQ(code, MPI_ERR_SPAWN);
        }
        if (t_rank == 0) printf("class %s: %s\n", class == MPI_ERR_SPAWN ? "spawn" : "?", text);
        return 0;
    }
    MPI_Comm_remote_size(inter, &remote);
    EQ(remote, count);
    for (int c = 0; c < count; c++) EQ(codes[c], MPI_SUCCESS);
    for (int c = 0; t_rank == 0 && c < count; c++) {
        MPI_Recv(name, sizeof name, MPI_CHAR, c, 5, inter, MPI_STATUS_IGNORE);
        if (strcmp(how, "quiet")) printf("child %d on %s\n", c, name);
    }
    MPI_Comm_disconnect(&inter);
    return 1;
}

int main(int argc, char **argv) {
    MPI_Comm parent;
    t_begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        char name[256] = "", *rank = getenv("OMPI_COMM_WORLD_RANK");
        gethostname(name, sizeof name);
        OK(rank && atoi(rank) == t_rank);
        if (!strcmp(argv[1], "print")) {
            printf("line of child %d\n", t_rank);
            fprintf(stderr, "error of child %d\n", t_rank);
        }
        MPI_Send(name, sizeof name, MPI_CHAR, 0, 5, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return t_failures != 0;
    }
    const char *how = argv[1];
    if (strcmp(how, "fatal")) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    else spawned(argv[2], 2, strcmp(argv[3], "-") ? argv[3] : NULL, "tell");
    if (!strcmp(how, "host")) spawned(argv[0], atoi(argv[3]), argv[2], "tell");
    else if (!strcmp(how, "spread")) spawned(argv[0], atoi(argv[2]), NULL, "tell");
    else if (!strcmp(how, "output")) spawned(argv[0], atoi(argv[2]), NULL, "print");
    else if (!strcmp(how, "here") || !strcmp(how, "on")) {
        int on = !strcmp(how, "on");
        for (int i = 0; i < 3; i++) spawned(argv[2 + on], on ? 2 : atoi(argv[3]), on ? argv[2] : NULL, "tell");
        OK(spawned(argv[0], 4, NULL, "quiet"));
    } else if (!strcmp(how, "again"))
        for (int i = 0; i < atoi(argv[2]); i++) OK(spawned(argv[0], atoi(argv[3]), NULL, "quiet"));
    return t_end();
}
