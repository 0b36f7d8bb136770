/* MPI_Comm_spawn and MPI_Comm_spawn_multiple: the program starts itself with what to do as arguments. Only the ranks that were
 * started first print. */
#include "t.h"
#include <limits.h>
#include <unistd.h>

static char self[4096];

/* What a child finds: its number, what it was told, and what its messages and its parents' add up to. */
enum { WORDS = 8 };

static void child(int argc, char **argv, MPI_Comm parent) {
    int remote, appnum_set, *appnum, word[WORDS] = {t_rank, t_size, argc, -1, -1, -1, -1, -1};
    char cwd[1000] = "";
    MPI_Comm_remote_size(parent, &remote);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &appnum_set);
    word[3] = appnum_set ? *appnum : -1;
    word[4] = remote;
    word[5] = getcwd(cwd, sizeof cwd) && !strcmp(cwd, "/");
    word[6] = argc > 2 ? (int)strlen(argv[2]) : -1;
    MPI_Send(word, WORDS, MPI_INT, t_rank % remote, 7, parent);
    int *universe, universe_set;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &universe_set);
    STRICT(universe_set && *universe >= remote + t_size);
    const char *job = argc > 1 ? argv[1] : "?";
    if (!strcmp(job, "talk")) {
        /* Large messages both ways, a broadcast from the parents, and one communicator of both groups. */
        int n = 200000, *data = malloc(n * sizeof *data), merged_rank, merged_size, sum, sent = -1;
        for (int i = 0; i < n; i++) data[i] = i + t_rank;
        MPI_Request r;
        MPI_Isend(data, n, MPI_INT, t_rank % remote, 8, parent, &r);
        int *back = malloc(n * sizeof *back);
        MPI_Recv(back, n, MPI_INT, t_rank % remote, 9, parent, MPI_STATUS_IGNORE);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        OK(!memcmp(data, back, n * sizeof *data));
        MPI_Bcast(&sent, 1, MPI_INT, 0, parent);
        EQ(sent, 4711);
        MPI_Comm all;
        MPI_Intercomm_merge(parent, 1, &all);
        MPI_Comm_rank(all, &merged_rank);
        MPI_Comm_size(all, &merged_size);
        EQ(merged_rank, remote + t_rank);
        EQ(merged_size, remote + t_size);
        MPI_Allreduce(&merged_rank, &sum, 1, MPI_INT, MPI_SUM, all);
        EQ(sum, merged_size * (merged_size - 1) / 2);
        MPI_Barrier(all);
        MPI_Comm_free(&all);
        free(data), free(back);
    } else if (!strcmp(job, "deeper") && argc > 2 && atoi(argv[2]) > 0) {
        char level[20], *args[] = {"deeper", level, NULL};
        sprintf(level, "%d", atoi(argv[2]) - 1);
        MPI_Comm below;
        int from_below, sum = 1;
        MPI_Comm_spawn(argv[0], args, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &below, MPI_ERRCODES_IGNORE);
        MPI_Recv(word, WORDS, MPI_INT, 0, 7, below, MPI_STATUS_IGNORE);
        MPI_Recv(&from_below, 1, MPI_INT, 0, 10, below, MPI_STATUS_IGNORE);
        sum += from_below;
        MPI_Barrier(below);
        MPI_Comm_disconnect(&below);
        MPI_Send(&sum, 1, MPI_INT, 0, 10, parent);
    } else if (!strcmp(job, "deeper")) {
        int one = 1;
        MPI_Send(&one, 1, MPI_INT, 0, 10, parent);
    }
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
    OK(parent == MPI_COMM_NULL);
    MPI_Comm_get_parent(&parent);
    OK(parent == MPI_COMM_NULL);
}

/* Hear from all children that answer to this rank, in order, and say what they found. */
static void hear(MPI_Comm comm, const char *what) {
    int me, size, children, word[WORDS];
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    MPI_Comm_remote_size(comm, &children);
    for (int c = me; c < children; c += size) {
        MPI_Recv(word, WORDS, MPI_INT, c, 7, comm, MPI_STATUS_IGNORE);
        say("%s: child %d of %d: argc %d appnum %d parents %d root directory %d second argument %d", what, word[0], word[1], word[2],
            word[3], word[4], word[5], word[6]);
    }
}

static void leave(MPI_Comm *comm) {
    MPI_Barrier(*comm);
    MPI_Comm_disconnect(comm);
    OK(*comm == MPI_COMM_NULL);
}

static void single(MPI_Comm from, int root, int count, const char *what) {
    PART(what);
    char *args[] = {"plain", "two words", NULL};
    int codes[16], inter, size, remote;
    for (int i = 0; i < 16; i++) codes[i] = -77;
    MPI_Comm comm;
    /* What to start matters at the root only. */
    int me;
    MPI_Comm_rank(from, &me);
    EQ(MPI_Comm_spawn(me == root ? self : "/nonexistent", me == root ? args : MPI_ARGV_NULL, count, MPI_INFO_NULL, root, from, &comm, codes), 0);
    for (int i = 0; i < count; i++) EQ(codes[i], MPI_SUCCESS);
    EQ(codes[count], -77);
    MPI_Comm_test_inter(comm, &inter);
    MPI_Comm_size(comm, &size);
    MPI_Comm_remote_size(comm, &remote);
    say("%s: inter %d, %d ranks and %d", what, inter, size, remote);
    hear(comm, what);
    leave(&comm);
}

static void talk(void) {
    PART("talk");
    char *args[] = {"talk", NULL};
    int children = 3, root = t_size - 1, n = 200000, number = 4711;
    MPI_Comm comm, all;
    MPI_Comm_spawn(self, args, children, MPI_INFO_NULL, root, MPI_COMM_WORLD, &comm, MPI_ERRCODES_IGNORE);
    hear(comm, "talk");
    int *data = malloc(n * sizeof *data);
    for (int c = t_rank; c < children; c += t_size) {
        MPI_Recv(data, n, MPI_INT, c, 8, comm, MPI_STATUS_IGNORE);
        OK(data[0] == c && data[n - 1] == n - 1 + c);
        MPI_Send(data, n, MPI_INT, c, 9, comm);
    }
    free(data);
    MPI_Bcast(&number, 1, MPI_INT, t_rank == 0 ? MPI_ROOT : MPI_PROC_NULL, comm);
    MPI_Intercomm_merge(comm, 0, &all);
    int rank, size, sum;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
    say("merged: rank %d of %d, sum %d", rank, size, sum);
    MPI_Barrier(all);
    MPI_Comm_free(&all);
    leave(&comm);
}

static void multiple(void) {
    PART("multiple");
    char *first[] = {"plain", "a", NULL}, *second[] = {"plain", NULL}, *commands[] = {self, self}, **argvs[] = {first, second};
    int counts[] = {1, 2}, codes[4] = {-7, -7, -7, -7};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm comm;
    MPI_Info_create(&infos[1]);
    MPI_Info_set(infos[1], "wdir", "/");
    MPI_Comm_spawn_multiple(2, commands, argvs, counts, infos, 0, MPI_COMM_WORLD, &comm, codes);
    for (int i = 0; i < 3; i++) EQ(codes[i], MPI_SUCCESS);
    EQ(codes[3], -7);
    hear(comm, "multiple");
    leave(&comm);
    MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &comm, MPI_ERRCODES_IGNORE);
    hear(comm, "multiple without arguments");
    leave(&comm);
    MPI_Info_free(&infos[1]);
}

static void deeper(void) {
    PART("deeper");
    char *args[] = {"deeper", "3", NULL};
    int sum, word[WORDS];
    MPI_Comm comm;
    MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm, MPI_ERRCODES_IGNORE);
    MPI_Recv(word, WORDS, MPI_INT, 0, 7, comm, MPI_STATUS_IGNORE);
    MPI_Recv(&sum, 1, MPI_INT, 0, 10, comm, MPI_STATUS_IGNORE);
    leave(&comm);
    say("deeper: %d generations", sum);
}

/* The groups of parents and children share nobody; those of two spawns neither. */
static void identities(void) {
    PART("identities");
    char *args[] = {"plain", NULL};
    MPI_Comm a, b;
    MPI_Group ga, gb, world, g;
    int size, result;
    MPI_Comm_spawn(self, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &a, MPI_ERRCODES_IGNORE);
    MPI_Comm_spawn(self, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &b, MPI_ERRCODES_IGNORE);
    MPI_Comm_remote_group(a, &ga);
    MPI_Comm_remote_group(b, &gb);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(ga, gb, &result);
    OK(result == MPI_UNEQUAL);
    MPI_Group_intersection(ga, gb, &g);
    OK(g == MPI_GROUP_EMPTY || (MPI_Group_size(g, &size), size == 0));
    MPI_Group_union(world, ga, &g);
    MPI_Group_size(g, &size);
    say("identities: %d", size);
    MPI_Group_rank(ga, &result);
    OK(result == MPI_UNDEFINED);
    MPI_Group_rank(world, &result);
    EQ(result, t_rank);
    hear(a, "a");
    hear(b, "b");
    leave(&b);
    leave(&a);
    MPI_Group_free(&ga), MPI_Group_free(&gb), MPI_Group_free(&world), MPI_Group_free(&g);
}

int main(int argc, char **argv) {
    MPI_Comm parent;
    t_begin(&argc, &argv);
    if (!realpath(argv[0], self)) abort();
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(argc, argv, parent);
        MPI_Finalize();
        return t_failures != 0;
    }
    single(MPI_COMM_WORLD, t_size - 1, 3, "world");
    single(MPI_COMM_SELF, 0, 1, "self");
    talk();
    multiple();
    deeper();
    identities();
    for (int i = 0; i < 3; i++) single(MPI_COMM_WORLD, 0, 2, "again");
    return t_end();
}
