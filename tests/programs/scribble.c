/* A rank that writes nonsense into whatever memory it shares through vmpi, found as any stray pointer would find it.
 * scribble HOW SEED: rank 1 scribbles, then all go on as if nothing had happened. HOW: noise (random words, all over) | zeros | ones |
 * small (words that could be ranks, cores, states) | lasting (small words for a second, while everybody works).
 * There is no right answer: the job may end in any way. Prints "scribbled BYTES" once it has. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t seed;
static uint64_t draw(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1dull;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint32_t word(const char *how) {
    if (!strcmp(how, "zeros")) return 0;
    if (!strcmp(how, "ones")) return UINT32_MAX;
    return !strcmp(how, "noise") ? (uint32_t)draw() : (uint32_t)(draw() % 9);
}

/* All of a small segment, the first MiB and then every few KiB of a large one. */
static void scribble(const char *how, volatile uint32_t *at, size_t words) {
    for (size_t i = 0; i < words; i += i < 1 << 18 ? 1 : 1 + draw() % 4096)
        if (draw() % 4) at[i] = word(how);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "noise";
    seed = 88172645463325252ull + (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) * 7919;
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 1) {
        struct { uintptr_t from, to; } found[16];
        int n = 0;
        char line[512], rights[8];
        FILE *maps = fopen("/proc/self/maps", "r");
        while (maps && n < 16 && fgets(line, sizeof line, maps)) {
            if (!strstr(line, "/memfd:vmpi-")) continue;
            if (sscanf(line, "%lx-%lx %7s", &found[n].from, &found[n].to, rights) == 3 && rights[1] == 'w') n++;
        }
        if (maps) fclose(maps);
        size_t bytes = 0;
        for (int i = 0; i < n; i++) bytes += found[i].to - found[i].from;
        /* Told first: afterwards this process may not live long enough. */
        printf("scribbled %zu\n", n < 2 ? (size_t)0 : bytes);
        fflush(stdout);
        double end = now() + (strcmp(how, "lasting") ? 0 : 1);
        do
            for (int i = 0; i < n; i++) scribble(how, (volatile uint32_t *)found[i].from, (found[i].to - found[i].from) / 4);
        while (now() < end);
    }
    static char big[1 << 18], in[1 << 18];
    for (int round = 0; round < 50; round++) {
        MPI_Request requests[2];
        MPI_Irecv(in, sizeof in, MPI_CHAR, (rank + size - 1) % size, round, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(big, round % 2 ? sizeof big : 100, MPI_CHAR, (rank + 1) % size, round, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
