/* The program's own regions: regions MODE. plain: "set up" once, and ten rounds of "solve" with "exchange" inside it, in which rank 0 works longer than the others
 * and they wait for it; then MPI_Pcontrol(7), (-7) around a barrier. odd: everything that is no good use: before MPI_Init and after MPI_Finalize, without begin
 * or end, deep, crossing, from threads, with names that are long, odd or a thousand. levels: 40 messages to the right neighbour while MPI_Pcontrol(0) holds, 10 after
 * MPI_Pcontrol(1). named: MPI_Pcontrol(1, "named") and MPI_Pcontrol(-1, "named") around a barrier, and calls with nothing behind the level. funneled: while a
 * rank waits in MPI_Recv, another thread of it, which may not call MPI, begins and ends regions. none: no call of these. forever: in "outer", again and again in "inner".
 * The functions are looked up, so that it runs with every MPI. Prints "regions done" at the end. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int (*begin_)(const char *), (*end_)(const char *);

static void begin(const char *name) {
    if (begin_ && begin_(name) != MPI_SUCCESS) abort();
}

static void end(const char *name) {
    if (end_ && end_(name) != MPI_SUCCESS) abort();
}

static void work(double ms) {
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1e3 + (now.tv_nsec - from.tv_nsec) * 1e-6 < ms);
}

static void shift(int rank, int size, int rounds) {
    char to[64] = {0}, from[64];
    for (int round = 0; round < rounds; round++)
        MPI_Sendrecv(to, 64, MPI_BYTE, (rank + 1) % size, 5, from, 64, MPI_BYTE, (rank + size - 1) % size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void *thread(void *number) {
    char own[32];
    snprintf(own, sizeof own, "thread %ld", (long)number);
    for (int i = 0; i < 500; i++) {
        begin(own);
        begin("shared");
        end(own);
        end("shared");
    }
    return NULL;
}

/* While the thread that may call MPI waits in it for more than two seconds. */
static void funneled(int rank, int size) {
    pthread_t other;
    pthread_create(&other, NULL, thread, (void *)0);
    if (rank == 0) {
        work(2500);
        for (int to = 1; to < size; to++) MPI_Send(&rank, 1, MPI_INT, to, 3, MPI_COMM_WORLD);
    } else {
        begin("main");
        MPI_Recv(&size, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        end("main");
    }
    pthread_join(other, NULL);
}

static void odd(int rank, int threads) {
    static char names[2][5001];
    memset(names, 'n', sizeof names);
    for (int i = 0; i < 2; i++) {
        names[i][4999] = '0' + i;
        names[i][5000] = 0;
        begin(names[i]);
        end(names[i]);
    }
    begin("never ended");
    end("never begun");
    begin("");
    end("");
    begin("\x1b[31m\xff\n");
    end("\x1b[31m\xff\n");
    for (int i = 0; i < 5000; i++) begin("deep");
    for (int i = 0; i < 5000; i++) end("deep");
    begin("a");
    begin("b");
    end("a");
    end("b");
    pthread_t others[4];
    for (long i = 0; i < 4 && threads; i++) pthread_create(&others[i], NULL, thread, (void *)i);
    for (int i = 0; i < 4 && threads; i++) pthread_join(others[i], NULL);
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof name, "one of many %d", i);
        begin(name);
        end(name);
    }
    if (rank == 1) begin("never ended");
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "plain";
    int rank, size, given;
    begin_ = (int (*)(const char *))dlsym(RTLD_DEFAULT, "MPIX_Region_begin");
    end_ = (int (*)(const char *))dlsym(RTLD_DEFAULT, "MPIX_Region_end");
    begin("early");
    end("early");
    MPI_Init_thread(&argc, &argv, strcmp(mode, "odd") ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(mode, "plain")) {
        begin("set up");
        work(20);
        end("set up");
        for (int round = 0; round < 10; round++) {
            begin("solve");
            work(rank == 0 ? 10 : 2);
            begin("exchange");
            MPI_Barrier(MPI_COMM_WORLD);
            end("exchange");
            end("solve");
        }
        MPI_Pcontrol(7);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Pcontrol(-7);
    } else if (!strcmp(mode, "odd")) {
        odd(rank, given == MPI_THREAD_MULTIPLE);
    } else if (!strcmp(mode, "forever")) {
        begin("outer");
        for (;;) {
            begin("inner");
            work(2);
            MPI_Barrier(MPI_COMM_WORLD);
            end("inner");
        }
    } else if (!strcmp(mode, "funneled")) {
        funneled(rank, size);
    } else if (!strcmp(mode, "levels")) {
        begin("around");
        MPI_Pcontrol(0);
        end("around");
        shift(rank, size, 40);
        work(60);
        MPI_Pcontrol(2, "more", 3);
        MPI_Pcontrol(1);
        MPI_Pcontrol(1, "not a region");
        MPI_Pcontrol(-1, "not a region");
        shift(rank, size, 10);
    } else if (!strcmp(mode, "named")) {
        MPI_Pcontrol(1, "named");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Pcontrol(-1, "named");
        MPI_Pcontrol(0, "event");
        MPI_Pcontrol(1, (char *)64);
        MPI_Pcontrol(-1, (char *)-1L);
        MPI_Pcontrol(1, "");
        MPI_Pcontrol(1, (char *)0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("regions done\n");
    MPI_Finalize();
    begin("late");
    end("late");
    MPI_Pcontrol(1);
    return 0;
}
