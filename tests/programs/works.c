/* Work without an end, each kind checked as it goes, to be killed in. works KIND [SECONDS]; KIND: small | large | collective | onesided | files | spawn | compute.
 * Prints "ready RANK PID" from each rank, "wrong" and leaves with 99 if an answer is; ends well after SECONDS (a minute). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, next, before;

static void demand(int holds, const char *what) {
    if (holds) return;
    printf("wrong: %s on rank %d\n", what, rank);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

static void small(int round) {
    for (int i = 0; i < 20; i++) {
        int mine = rank + round + i, theirs = -1;
        MPI_Sendrecv(&mine, 1, MPI_INT, next, 1, &theirs, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        demand(theirs == before + round + i, "a small message");
    }
}

static void large(int round) {
    enum { BYTES = 1 << 20 };
    static char out[BYTES], in[BYTES];
    memset(out, rank + round, BYTES);
    MPI_Sendrecv(out, BYTES, MPI_CHAR, next, 2, in, BYTES, MPI_CHAR, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < BYTES; i += 4093) demand(in[i] == (char)(before + round), "a large message");
}

static void collective(int round) {
    int mine = rank * round, sum, all[64];
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    demand(sum == size * (size - 1) / 2 * round, "a sum");
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    demand(all[next] == next * round, "an allgather");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void onesided(int round) {
    int *memory, one = 1;
    static double block[40000];
    double *far;
    MPI_Win win, wide;
    MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memory[0] = round;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&one, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    demand(memory[0] == round + 1, "an accumulate");
    far = malloc(sizeof block);
    MPI_Win_create(far, sizeof block, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &wide);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, wide);
    MPI_Put(block, 40000, MPI_DOUBLE, next, 0, 40000, MPI_DOUBLE, wide);
    MPI_Win_unlock(next, wide);
    MPI_Win_free(&wide);
    free(far);
    MPI_Win_free(&win);
}

static void files(int round) {
    const char *dir = getenv("VMPI_RUNTIME_DIR");
    char path[512];
    int mine = rank + round, theirs = -1;
    MPI_File file;
    snprintf(path, sizeof path, "%s/works.dat", dir ? dir : ".");
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file)) return;
    MPI_File_write_at_all(file, rank * 4096, &mine, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(file, next * 4096, &theirs, 1, MPI_INT, MPI_STATUS_IGNORE);
    demand(theirs == next + round, "a file");
    MPI_File_close(&file);
}

static void spawn(const char *self) {
    MPI_Comm children;
    char *arguments[] = {"child", NULL};
    int errors[2];
    MPI_Comm_spawn(self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, errors);
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
}

static void compute(void) {
    volatile double x = 1;
    for (int i = 0; i < 2000000; i++) x = x * 1.0000001 + 0.1;
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "small";
    double seconds = argc > 2 ? atof(argv[2]) : 60;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Barrier(parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready %d %d\n", rank, (int)getpid());
    double end = MPI_Wtime() + seconds;
    for (int round = 1, goes_on = 1; goes_on; round++) {
        if (!strcmp(kind, "small")) small(round);
        else if (!strcmp(kind, "large")) large(round);
        else if (!strcmp(kind, "collective")) collective(round);
        else if (!strcmp(kind, "onesided")) onesided(round);
        else if (!strcmp(kind, "files")) files(round);
        else if (!strcmp(kind, "spawn")) spawn(argv[0]);
        else compute();
        goes_on = MPI_Wtime() < end;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
