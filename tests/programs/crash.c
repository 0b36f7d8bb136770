/* Kinds of death, by the first argument; the second is the rank that dies ("all": every one). What is printed in the end tells that it did not die. */
#include <assert.h>
#include <fenv.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int rank, size;
static volatile int zero;
static int *volatile nowhere;

static __attribute__((noinline)) void null_pointer(void) { *nowhere = 1; }

static __attribute__((noinline)) int deeper(int depth) {
    volatile char room[512];
    room[depth % 512] = 1;
    return deeper(depth + 1) + room[0];
}

static __attribute__((noinline)) int divide(void) { return 7 / zero; }

static __attribute__((noinline)) double divide_double(void) {
    feenableexcept(FE_DIVBYZERO);
    return 1.0 / (double)zero;
}

static __attribute__((noinline)) void check(void) { assert(zero == 1); }

static __attribute__((noinline)) void call_nothing(void) {
    void (*volatile function)(void) = 0;
    function();
}

static __attribute__((noinline)) void beyond_the_file(void) {
    char path[] = "/tmp/vmpi-crash-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    volatile char *page = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
    zero = page[8];
}

static void *in_thread(void *unused) {
    null_pointer();
    return unused;
}

/* vmpi reads the buffer: it dies inside of MPI_Send, with whatever it holds there. */
static __attribute__((noinline)) void bad_buffer(void) {
    MPI_Send((void *)0x1000, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD);
}

static __attribute__((noinline)) void bad_rank(void) { MPI_Send(&rank, 1, MPI_INT, size + 5, 3, MPI_COMM_WORLD); }

static void own_handler(int signal) {
    static const char text[] = "own handler\n";
    (void)!write(2, text, sizeof text - 1);
    signal == SIGSEGV ? _exit(7) : _exit(8);
}

static __attribute__((noinline)) void give_up(void) { exit(3); }

int main(int argc, char **argv) {
    const char *what = argv[1];
    if (!strcmp(what, "own-handler")) signal(SIGSEGV, own_handler);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(argv[2], "all") || atoi(argv[2]) == rank) {
        if (!strcmp(what, "null") || !strcmp(what, "own-handler")) null_pointer();
        if (!strcmp(what, "stack")) deeper(0);
        if (!strcmp(what, "divide")) divide();
        if (!strcmp(what, "divide-double")) divide_double();
        if (!strcmp(what, "abort")) abort();
        if (!strcmp(what, "assert")) check();
        if (!strcmp(what, "call")) call_nothing();
        if (!strcmp(what, "bus")) beyond_the_file();
        if (!strcmp(what, "illegal")) __builtin_trap();
        if (!strcmp(what, "buffer")) bad_buffer();
        if (!strcmp(what, "error")) bad_rank();
        if (!strcmp(what, "mpi-abort")) MPI_Abort(MPI_COMM_WORLD, 9);
        if (!strcmp(what, "exit")) give_up();
        if (!strcmp(what, "raise")) kill(getpid(), SIGSEGV), pause();
        if (!strcmp(what, "kill")) kill(getpid(), SIGKILL);
        if (!strcmp(what, "thread")) {
            pthread_t thread;
            pthread_create(&thread, 0, in_thread, 0);
            pthread_join(thread, 0);
        }
        if (!strcmp(what, "fork")) {
            /* A child that dies is no rank that dies. */
            if (fork() == 0) null_pointer();
            sleep(1);
        }
        if (!strcmp(what, "memory")) {
            for (;;) memset(malloc(1 << 20), 1, 1 << 20);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("alive\n");
    MPI_Finalize();
    return 0;
}
