/* Barriers and allreduces with checked sums, in different sizes. barrier_allreduce [rounds] */
#include "t.h"
#include <time.h>
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 50;
    double total = 0;
    for (int i = 0; i < rounds; i++) {
        long in = (long)(t_rank + 1) * (i + 1), sum = -1;
        MPI_Allreduce(&in, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        EQ(sum, (long)t_size * (t_size + 1) / 2 * (i + 1));
        MPI_Barrier(MPI_COMM_WORLD);
        int n = 1 << (i % 13);
        double *a = malloc(n * sizeof *a), *b = calloc(n, sizeof *b);
        for (int k = 0; k < n; k++) a[k] = t_rank + k;
        MPI_Allreduce(a, b, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int k = 0; k < n; k++) OK(b[k] == t_size * (t_size - 1) / 2 + (double)k * t_size);
        total += b[n - 1];
        free(a);
        free(b);
    }
    /* Nobody leaves a barrier before the last one has entered it: entry times must all lie before exit times. */
    double entry, exit_, last_entry, first_exit;
    struct timespec late = {0, 2000000L * t_rank};
    nanosleep(&late, NULL);
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    entry = t.tv_sec + t.tv_nsec * 1e-9;
    MPI_Barrier(MPI_COMM_WORLD);
    clock_gettime(CLOCK_MONOTONIC, &t);
    exit_ = t.tv_sec + t.tv_nsec * 1e-9;
    MPI_Allreduce(&entry, &last_entry, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&exit_, &first_exit, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    OK(last_entry <= first_exit);
    say("%d rounds, total %.1f", rounds, total);
    return t_end();
}
