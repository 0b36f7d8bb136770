/* A rank that writes one word of the memory that it shares with the others of its node, again and again, with values that could be there.
 * overwritten OFFSET MS VALUE...: rank 1 writes the VALUEs in turn to that place of the node segment for so many ms, while all exchange messages; then
 * all go on for a while. Prints "wrong" if an answer is, and "done" at its end. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile uint32_t *place;
static uint32_t values[16];
static int value_count;
static double ms;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *write_it(void *unused) {
    double end = now() + ms / 1000;
    for (unsigned i = 0; now() < end; i++) {
        *place = values[i % value_count];
        struct timespec pause = {0, 1000 * (i * 7919 % 50)};
        nanosleep(&pause, NULL);
    }
    return unused;
}

static void find(size_t offset) {
    char line[512], rights[8];
    uintptr_t from, to;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !place && fgets(line, sizeof line, maps))
        if (strstr(line, "/memfd:vmpi-node") && sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[1] == 'w')
            place = (volatile uint32_t *)(from + offset);
    if (maps) fclose(maps);
}

int main(int argc, char **argv) {
    int rank, size, thread, wrong = 0, goes_on = 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &thread);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ms = atof(argv[2]);
    for (int i = 3; i < argc && value_count < 16; i++) values[value_count++] = strtoul(argv[i], NULL, 0);
    pthread_t writer;
    if (rank == 1) {
        find(strtoul(argv[1], NULL, 0));
        printf(place ? "found\n" : "not found\n");
        fflush(stdout);
        pthread_create(&writer, NULL, write_it, NULL);
    }
    static char big[100000], in[100000];
    double end = now() + 2 * ms / 1000;
    for (int round = 0; goes_on; round++) {
        int next = (rank + 1) % size, before = (rank + size - 1) % size, mine = rank + round, theirs = -1, sum = -1;
        MPI_Sendrecv(&mine, 1, MPI_INT, next, 1, &theirs, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += theirs != before + round;
        memset(big, mine, sizeof big);
        MPI_Sendrecv(big, sizeof big, MPI_CHAR, before, 2, in, sizeof in, MPI_CHAR, next, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += in[0] != (char)(next + round) || in[sizeof in - 1] != in[0];
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != size * (size - 1) / 2;
        goes_on = now() < end;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 1) pthread_join(writer, NULL);
    if (wrong) printf("wrong\n");
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank) printf("done\n");
    MPI_Finalize();
    return wrong != 0;
}
