/* What the benchmarks' programs share: a clock, a CPU of one's own, and lines that `cargo xtask bench` reads:
 *   @ FIGURE X VALUE [SYSTEM]   a measurement (SYSTEM: for floors, of which one program measures several)
 *   = NAME VALUE                what must be the same in all runs
 *   ! sitting                   all ranks are about to wait for ever
 * To be included first. */
#ifndef BENCH_H
#define BENCH_H
#define _GNU_SOURCE
#ifndef BENCH_WITHOUT_MPI
#include <mpi.h>
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__attribute__((unused)) static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

__attribute__((unused)) static void pin_to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) perror("sched_setaffinity");
}

/* The CPU at this place of a list like 0,1 (it goes round), -1 if there is none. */
__attribute__((unused)) static int cpu_of(const char *list, int place) {
    int count = 0;
    for (int pass = 0; pass < 2; pass++) {
        int at = 0;
        for (const char *c = list; c && *c; at++) {
            if (pass && at == place % count) return atoi(c);
            c = strchr(c, ',');
            c = c ? c + 1 : NULL;
        }
        count = at;
        if (count == 0) return -1;
    }
    return -1;
}

/* A batch is long enough when it takes this. */
__attribute__((unused)) static double batch_us(void) {
    const char *set = getenv("BENCH_BATCH_MS");
    return 1e3 * (set ? atof(set) : 50);
}

/* A step of a five-point stencil on rows x columns points, from one array to another; both have a border of one point. */
__attribute__((noinline, unused)) static void five_points(const double *restrict from, double *restrict to, int rows, int columns) {
    long width = columns + 2;
    for (int i = 1; i <= rows; i++) {
        const double *row = from + i * width;
        double *result = to + i * width;
        for (int j = 1; j <= columns; j++)
            result[j] = 0.5 * row[j] + 0.125 * ((row[j - 1] + row[j + 1]) + (row[j - width] + row[j + width]));
    }
}

#ifndef BENCH_WITHOUT_MPI
/* BENCH_PIN names the CPUs that the ranks take in turn, where the launcher does not pin. */
__attribute__((unused)) static void pin_rank(int rank) {
    int cpu = cpu_of(getenv("BENCH_PIN"), rank);
    if (cpu >= 0) pin_to(cpu);
}

/* Microseconds that work(1) takes, from batches that double until one is long enough; the batches before are the warm-up.
 * Collective; rank 0's clock counts, and its result is everybody's. */
__attribute__((unused)) static double measure(void (*work)(long)) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    work(1);
    for (long times = 1;; times *= 2) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now_us(), us;
        work(times);
        us = now_us() - start;
        MPI_Bcast(&us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (us >= batch_us()) return us / times;
    }
}

/* A figure of a job of so many ranks as there are. */
__attribute__((unused)) static void report(const char *figure, double value) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) printf("@ %s %d %.4f\n", figure, size, value);
    fflush(stdout);
}
#endif
#endif
