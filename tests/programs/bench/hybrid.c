/* Ranks with threads. hybrid work STEPS | turn ROUNDS FIGURE | barrier ROUNDS FIGURE; x of a figure is 10 times the ranks, plus the threads of each.
 * work: steps of an OpenMP loop, an exchange with both neighbours of a ring and a sum; the same work in all, however it is cut.
 * turn: ranks pass a turn round through a shared window, each spinning on memory until it has it.
 * barrier: a barrier of a rank's threads that spins on memory, and between two of them each thread exchanges a number with another rank. */
#include "bench.h"
#include <omp.h>
#include <pthread.h>
#include <stdint.h>

enum { PIECES = 64, TURNS = 20000, HALO = 1024, MOST = 16 };

static int rank, size;

/* A piece of work that no compiler shortens. */
static uint64_t piece(uint64_t seed) {
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < TURNS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

static void work(int steps) {
    static double out[HALO], in[HALO];
    uint64_t all = 0;
    int threads = omp_get_max_threads();
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (int step = 0; step < steps; step++) {
        uint64_t sum = 0, total;
#pragma omp parallel for reduction(+ : sum) schedule(static)
        for (int i = rank * PIECES / size; i < (rank + 1) * PIECES / size; i++) sum += piece(step * PIECES + i);
        for (int way = 1; way >= -1; way -= 2)
            MPI_Sendrecv(out, HALO, MPI_DOUBLE, (rank + way + size) % size, 0, in, HALO, MPI_DOUBLE, (rank - way + size) % size, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        all += total;
    }
    double took = now_us() - start;
    if (rank == 0) printf("@ work %d %.4f\n= sum_of_%d_steps %llu\n", 10 * size + threads, took / 1e3, steps, (unsigned long long)all);
}

static void turn(int rounds, const char *figure) {
    int unit;
    MPI_Aint bytes;
    MPI_Win win;
    volatile int *at;
    MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&at, &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, (void *)&at);
    if (rank == 0) *at = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (int mine = rank; mine < rounds * size; mine += size) {
        while (*at != mine)
            ;
        *at = mine + 1;
    }
    while (*at < rounds * size)
        ;
    double took = now_us() - start;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("@ %s %d %.4f\n", figure, 10 * size + 1, took / 1e3);
    MPI_Win_free(&win);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int left[2];
static int phase, rounds_to_go;

static void meet(void) {
    pthread_mutex_lock(&lock);
    volatile int *here = &left[phase];
    if (--*here == 0) {
        phase = !phase;
        left[phase] = size;
    }
    pthread_mutex_unlock(&lock);
    while (*here > 0)
        ;
}

static void *exchange(void *with) {
    int peer = (int)(long)with;
    for (int round = 0; round < rounds_to_go; round++) {
        int in = round, out = round;
        meet();
        if (peer != rank) MPI_Sendrecv(&out, 1, MPI_INT, peer, 0, &in, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (in != round) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return NULL;
}

static void barrier(int rounds, const char *figure) {
    pthread_t threads[MOST];
    rounds_to_go = rounds;
    left[0] = size;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (long peer = 0; peer < size; peer++) pthread_create(&threads[peer], NULL, exchange, (void *)peer);
    for (int peer = 0; peer < size; peer++) pthread_join(threads[peer], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("@ %s %d %.4f\n", figure, 10 * size + size, (now_us() - start) / 1e3);
}

int main(int argc, char **argv) {
    int level, wanted = argc > 1 && !strcmp(argv[1], "barrier") ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
    MPI_Init_thread(&argc, &argv, wanted, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "work", *figure = argc > 3 ? argv[3] : what;
    int times = argc > 2 ? atoi(argv[2]) : 50;
    if (size > MOST || level < wanted) MPI_Abort(MPI_COMM_WORLD, 2);
    if (!strcmp(what, "turn"))
        turn(times, figure);
    else if (!strcmp(what, "barrier"))
        barrier(times, figure);
    else
        work(times);
    MPI_Finalize();
    return 0;
}
