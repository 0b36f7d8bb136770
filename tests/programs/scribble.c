/* A rank that writes nonsense into whatever memory it shares through vmpi, found as any stray pointer would find it.
 * scribble HOW SEED [TRAFFIC MS]: rank 1 scribbles, then all go on as if nothing had happened. HOW: noise (random words, all over) | zeros | ones |
 * small (words that could be ranks, cores, states) | lasting (small words for a second, while everybody works).
 * With TRAFFIC (small | large | collective | onesided | unexpected | idle) a thread of rank 1 scribbles for MS while all work, for half as long again; HOW, then:
 * noise | zeros | ones | node (a few words of the node segment, likely ones) | job (of the job segment) | rare (one word, seldom) | taken (words that are there get
 * likely values) | bits | moved (pieces copied elsewhere) | holes (pages given back) | files (by the descriptors) | pids (its own and others').
 * There is no right answer: the job may end in any way. Prints "scribbled BYTES" once it has. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

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

struct area {
    char *at;
    size_t size;
    int is_node;
} areas[16];
static int area_count;

static size_t find_areas(void) {
    uintptr_t from, to;
    char line[512], rights[8];
    size_t bytes = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && area_count < 16 && fgets(line, sizeof line, maps)) {
        if (!strstr(line, "/memfd:vmpi-") || sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || rights[1] != 'w') continue;
        areas[area_count++] = (struct area){(char *)from, to - from, strstr(line, "vmpi-node") != NULL};
        bytes += to - from;
    }
    if (maps) fclose(maps);
    return area_count < 2 ? 0 : bytes;
}

/* Words that could stand for a rank, a core, a state, a count, a size, or for nobody. */
static uint32_t likely(void) {
    static const uint32_t special[] = {15, 16, 31, 63, 64, 255, 256, 511, 1023, 4095, 4096, 65535, 65536, 1u << 20, 1u << 26, INT32_MAX,
                                       1u << 31, UINT32_MAX - 4, UINT32_MAX - 3, UINT32_MAX - 2, UINT32_MAX - 1, UINT32_MAX};
    uint64_t kind = draw() % 8;
    return kind == 0 ? (uint32_t)draw() : kind < 5 ? (uint32_t)(draw() % 11) : special[draw() % (sizeof special / sizeof *special)];
}

static struct area *choose(int node) {
    for (int tries = 0; tries < 64; tries++) {
        struct area *area = &areas[draw() % area_count];
        if (area->is_node == node) return area;
    }
    return &areas[0];
}

static volatile uint32_t *word_of(struct area *area, size_t within) {
    size_t size = area->size < within ? area->size : within;
    return (volatile uint32_t *)area->at + draw() % (size / 4);
}

static void pause_us(unsigned us) {
    struct timespec time = {0, 1000l * us};
    nanosleep(&time, NULL);
}

static void through_files(void) {
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    char path[300], link[300];
    while (dir && (entry = readdir(dir))) {
        int fd = atoi(entry->d_name);
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, link, sizeof link - 1);
        if (fd < 3 || length <= 0) continue;
        link[length] = 0;
        uint64_t some[32], number = draw() % 2 ? 1 : UINT64_MAX - 15;
        for (int i = 0; i < 32; i++) some[i] = draw();
        if (strstr(link, "memfd:")) (void)!pwrite(fd, some, sizeof some, draw() % (1 << 20));
        if (strstr(link, "eventfd") && fcntl(fd, F_GETFL) & O_NONBLOCK) (void)!write(fd, &number, sizeof number);
    }
    if (dir) closedir(dir);
}

static const char *how;
static double scribble_ms;
static int pids[64], pid_count;

static void once(void) {
    struct area *node = choose(1), *job = choose(0), *any = &areas[draw() % area_count];
    if (!strcmp(how, "noise") || !strcmp(how, "zeros") || !strcmp(how, "ones")) {
        volatile uint32_t *at = word_of(any, 1 << 20);
        for (int i = 0; i < 1024 && (char *)(at + i) < any->at + any->size; i++) at[i] = word(how);
    } else if (!strcmp(how, "node")) {
        for (int i = 0; i < 8; i++) *word_of(node, 1 << 15) = likely();
        pause_us(draw() % 3000);
    } else if (!strcmp(how, "job")) {
        for (int i = 0; i < 16; i++) *word_of(job, job->size) = likely();
        pause_us(draw() % 500);
    } else if (!strcmp(how, "rare")) {
        /* Behind the header and the calling card: cores, who is ready, ranks. */
        size_t room = node->size > 4096 + 24576 ? 24576 : node->size - 4096;
        *(volatile uint32_t *)(node->at + 4096 + draw() % (room / 4) * 4) = likely();
        pause_us(5000 + draw() % 60000);
    } else if (!strcmp(how, "taken")) {
        volatile uint32_t *at = word_of(any, 1 << 24);
        for (int i = 0; i < 1024 && (char *)(at + i) < any->at + any->size; i++)
            if (at[i] && draw() % 16 == 0) at[i] = likely();
        pause_us(draw() % 2000);
    } else if (!strcmp(how, "bits")) {
        for (int i = 0; i < 4; i++) *word_of(any, 1 << 16) ^= 1u << draw() % 32;
        pause_us(draw() % 2000);
    } else if (!strcmp(how, "moved")) {
        size_t room = job->size - 8192;
        memmove(job->at + draw() % room / 64 * 64, job->at + draw() % room / 64 * 64, 64 + draw() % 4096);
        pause_us(draw() % 1000);
    } else if (!strcmp(how, "holes")) {
        size_t pages = any->size / 4096;
        madvise(any->at + draw() % pages * 4096, 4096, MADV_REMOVE);
        pause_us(draw() % 2000);
    } else if (!strcmp(how, "files")) {
        through_files();
        pause_us(2000);
    } else {
        volatile uint32_t *at = (volatile uint32_t *)node->at;
        for (size_t i = 0; i < node->size / 4 && i < 1 << 18; i++)
            for (int k = 0; k < pid_count; k++)
                if (at[i] == (uint32_t)pids[k]) at[i] = draw() % 3 ? (uint32_t)pids[draw() % pid_count] : (uint32_t)(draw() % 2 ? 1 : getppid());
        pause_us(5000);
    }
}

static void *scribble_along(void *unused) {
    double end = now() + scribble_ms / 1000;
    while (now() < end) once();
    return unused;
}

static void work(const char *traffic, int rank, int size, int round) {
    static char out[300000], in[300000];
    static MPI_Win win = MPI_WIN_NULL;
    static int *memory;
    int next = (rank + 1) % size, before = (rank + size - 1) % size, got = 0, one = 1;
    MPI_Request requests[32];
    if (!strcmp(traffic, "small")) {
        for (int i = 0; i < 10; i++) MPI_Sendrecv(&round, 1, MPI_INT, next, 1, &got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strcmp(traffic, "large")) {
        MPI_Sendrecv(out, sizeof out, MPI_CHAR, next, 1, in, sizeof in, MPI_CHAR, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strcmp(traffic, "collective")) {
        MPI_Allreduce(&one, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if (!strcmp(traffic, "onesided")) {
        if (win == MPI_WIN_NULL) MPI_Win_allocate(4096, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        MPI_Win_fence(0, win);
        MPI_Accumulate(&one, 1, MPI_INT, next, round % 1000, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_fence(0, win);
    } else if (!strcmp(traffic, "unexpected")) {
        for (int i = 0; i < 16; i++) MPI_Isend(out, 100 * i, MPI_CHAR, next, i, MPI_COMM_WORLD, &requests[i]);
        for (int i = 15; i >= 0; i--) MPI_Irecv(in + 2000 * i, 2000, MPI_CHAR, before, i, MPI_COMM_WORLD, &requests[16 + i]);
        MPI_Waitall(32, requests, MPI_STATUSES_IGNORE);
    } else {
        pause_us(1000);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* All work until rank 0 says that it is enough. */
static void work_along(const char *traffic, int rank, int size) {
    int pid = getpid(), goes_on = 1;
    pthread_t thread;
    MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
    pid_count = size;
    if (rank == 1) {
        size_t bytes = find_areas();
        printf("scribbled %zu\n", bytes);
        fflush(stdout);
        pthread_create(&thread, NULL, scribble_along, NULL);
    }
    double end = now() + 1.5 * scribble_ms / 1000;
    for (int round = 0; goes_on; round++) {
        work(traffic, rank, size, round);
        goes_on = now() < end;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 1) pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    how = argc > 1 ? argv[1] : "noise";
    seed = 88172645463325252ull + (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) * 7919;
    int rank, size, sum, threads;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 4) {
        scribble_ms = atof(argv[4]);
        work_along(argv[3], rank, size);
        MPI_Finalize();
        return 0;
    }
    if (rank == 1) {
        /* Told first: afterwards this process may not live long enough. */
        printf("scribbled %zu\n", find_areas());
        fflush(stdout);
        double end = now() + (strcmp(how, "lasting") ? 0 : 1);
        do
            for (int i = 0; i < area_count; i++) scribble(how, (volatile uint32_t *)areas[i].at, areas[i].size / 4);
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
