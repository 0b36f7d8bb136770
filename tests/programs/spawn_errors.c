/* Spawns that fail, soft numbers, info keys: what the standard says where the peers end the job. Checked by itself. */
#include "t.h"
#include <sys/stat.h>
#include <unistd.h>

static char self[4096];
enum { MANY = 1000000 };

static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static void fails(const char *what, const char *command, int count, MPI_Info info, int class) {
    char *args[] = {"x", NULL};
    static int codes[MANY + 1];
    for (int i = 0; i < 4; i++) codes[i] = -7;
    MPI_Comm comm = MPI_COMM_WORLD;
    int code = MPI_Comm_spawn(command, args, count, info, 0, MPI_COMM_WORLD, &comm, codes);
    if (class_of(code) != class) fprintf(stderr, "rank %d: %s: class %d, not %d\n", t_rank, what, class_of(code), class);
    EQ(class_of(code), class);
    OK(comm == MPI_COMM_NULL);
    for (int i = 0; i < count && i < 4; i++) EQ(class_of(codes[i]), MPI_ERR_SPAWN);
    if (count >= 0 && count < 4) EQ(codes[count], -7);
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    OK(length > 0);
}

static MPI_Info with(const char *key, const char *value) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    return info;
}

/* Spawn with a hint that changes nothing for the worse; how many came. */
static int came(const char *command, int count, MPI_Info info, const char *expected) {
    char *args[] = {"report", NULL}, text[1000] = "";
    int remote = -1;
    MPI_Comm comm;
    EQ(MPI_Comm_spawn(command, args, count, info, 0, MPI_COMM_WORLD, &comm, MPI_ERRCODES_IGNORE), MPI_SUCCESS);
    MPI_Comm_remote_size(comm, &remote);
    if (t_rank == 0)
        for (int c = 0; c < remote; c++) {
            MPI_Recv(text, sizeof text, MPI_CHAR, c, 1, comm, MPI_STATUS_IGNORE);
            if (expected && strcmp(text, expected)) fprintf(stderr, "got \"%s\", expected \"%s\"\n", text, expected);
            OK(!expected || !strcmp(text, expected));
        }
    MPI_Comm_disconnect(&comm);
    MPI_Info_free(&info);
    return remote;
}

int main(int argc, char **argv) {
    MPI_Comm parent;
    t_begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    /* A child may have been found by name, in another directory. */
    if (parent == MPI_COMM_NULL && !realpath(argv[0], self)) abort();
    if (parent != MPI_COMM_NULL) {
        char text[1000] = "", cwd[500] = "";
        MPI_Errhandler handler;
        MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
        sprintf(text, "%s %s %d", getcwd(cwd, sizeof cwd), getenv("SPAWN_TEST") ? getenv("SPAWN_TEST") : "-", handler == MPI_ERRORS_RETURN);
        MPI_Send(text, sizeof text, MPI_CHAR, 0, 1, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

    PART("failures");
    for (int i = 0; i < 3; i++) {
        fails("no such file", "/nonexistent/program", 2, MPI_INFO_NULL, MPI_ERR_SPAWN);
        fails("no such program", "no-such-program-of-vmpi", 1, MPI_INFO_NULL, MPI_ERR_SPAWN);
        fails("not executable", "/etc/passwd", 3, MPI_INFO_NULL, MPI_ERR_SPAWN);
        fails("a directory", "/etc", 1, MPI_INFO_NULL, MPI_ERR_SPAWN);
        fails("too many", self, MANY, MPI_INFO_NULL, MPI_ERR_SPAWN);
        fails("none", self, 0, MPI_INFO_NULL, MPI_ERR_ARG);
        fails("negative", self, -1, MPI_INFO_NULL, MPI_ERR_ARG);
        fails("no such directory", self, 2, with("wdir", "/nonexistent"), MPI_ERR_SPAWN);
        fails("another host", self, 2, with("host", "elsewhere.example"), MPI_ERR_SPAWN);
        fails("soft", self, 3, with("soft", "5:9"), MPI_ERR_INFO_VALUE);
        fails("error handler", self, 3, with("mpi_initial_errhandler", "mpi_errors_what"), MPI_ERR_INFO_VALUE);
    }
    /* A script without an interpreter line that exists: found, but exec fails after others were started. */
    char bad[200];
    sprintf(bad, "./spawn-bad-%d", (int)getpid());
    if (t_rank == 0) {
        FILE *file = fopen(bad, "w");
        fputs("#!/nonexistent/interpreter\n", file);
        fclose(file);
        if (chmod(bad, 0755)) abort();
    }
    char *commands[] = {self, bad}, *args[] = {"never", NULL}, **argvs[] = {args, args};
    int counts[] = {2, 1}, codes[4] = {-7, -7, -7, -7};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm comm = MPI_COMM_WORLD;
    for (int i = 0; i < 5; i++) {
        EQ(class_of(MPI_Comm_spawn_multiple(2, commands, argvs, counts, infos, 0, MPI_COMM_WORLD, &comm, codes)), MPI_ERR_SPAWN);
        OK(comm == MPI_COMM_NULL);
        for (int k = 0; k < 3; k++) EQ(class_of(codes[k]), MPI_ERR_SPAWN);
        EQ(codes[3], -7);
    }
    if (t_rank == 0) unlink(bad);
    EQ(class_of(MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, t_size, MPI_COMM_WORLD, &comm, codes)), MPI_ERR_ROOT);
    EQ(class_of(MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, -1, MPI_COMM_WORLD, &comm, codes)), MPI_ERR_ROOT);

    PART("keys");
    char cwd[500], here[600], root[] = "/ - 0";
    sprintf(here, "%s - 0", getcwd(cwd, sizeof cwd));
    EQ(came(self, 2, with("wdir", "/"), root), 2);
    EQ(came(self, 1, with("host", "localhost"), here), 1);
    EQ(came(self, 1, with("no_such_key", "value"), here), 1);
    EQ(came(self, 3, with("soft", "0:2"), here), 2);
    EQ(came(self, 4, with("soft", "1,3,7"), here), 3);
    char expected[700];
    sprintf(expected, "%s set 0", cwd);
    EQ(came(self, 1, with("env", "SPAWN_TEST=set\nOTHER=1"), expected), 1);
    sprintf(expected, "%s - 1", cwd);
    EQ(came(self, 1, with("mpi_initial_errhandler", "mpi_errors_return"), expected), 1);
    /* The program by its name alone. */
    char directory[600], *name;
    strcpy(directory, self);
    name = strrchr(directory, '/');
    *name++ = 0;
    EQ(came(name, 1, with("path", directory), here), 1);

    PART("numbers are used again");
    for (int i = 0; i < 40; i++) EQ(came(self, 20, with("k", "v"), NULL), 20);
    say("done");
    return t_end();
}
