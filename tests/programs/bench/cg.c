/* cg NX NY NZ ITERATIONS: conjugate gradients in the manner of the Mantevo suite's HPCCG, written anew: each rank has a brick
 * of NX x NY x NZ points, the bricks are stacked along z, the matrix is that of the 27-point stencil (27 on the diagonal, -1
 * beside it) in compressed rows; the solution is 1 everywhere. Times by MPI_Wtime of rank 0, and what rank 0 makes of
 * them: its own operations divided by its own time. */
#include "bench.h"
#include <math.h>
static int rank, size, nx, ny, nz;
static long rows, plane;
static long *first;
static int *column;
static double *value;
static double ddot_time, waxpby_time, spmv_time, exchange_time;
static double ddot_flops, waxpby_flops, spmv_flops;

static double *vector(void) { return calloc(rows + 2 * plane, sizeof(double)) ; }

/* Vectors have a plane of halo before and after the rank's own rows; column numbers count from the first of these. */
static double build(double *b) {
    first = malloc((rows + 1) * sizeof *first);
    column = malloc(27 * rows * sizeof *column);
    value = malloc(27 * rows * sizeof *value);
    long used = 0;
    for (int z = 0; z < nz; z++)
        for (int y = 0; y < ny; y++)
            for (int x = 0; x < nx; x++) {
                long row = z * plane + (long)y * nx + x, start = used;
                first[row] = used;
                for (int dz = -1; dz <= 1; dz++) {
                    long gz = (long)rank * nz + z + dz;
                    if (gz < 0 || gz >= (long)size * nz) continue;
                    for (int dy = -1; dy <= 1; dy++)
                        for (int dx = -1; dx <= 1; dx++) {
                            if (x + dx < 0 || x + dx >= nx || y + dy < 0 || y + dy >= ny) continue;
                            column[used] = (int)((z + dz + 1) * plane + (long)(y + dy) * nx + x + dx);
                            value[used++] = dx || dy || dz ? -1 : 27;
                        }
                }
                b[row] = 27.0 - (used - start - 1);
            }
    first[rows] = used;
    return (double)used;
}

static void exchange(double *p) {
    int below = rank ? rank - 1 : MPI_PROC_NULL, above = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    MPI_Request requests[4];
    double start = MPI_Wtime();
    MPI_Irecv(p, (int)plane, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(p + plane + rows, (int)plane, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(p + plane, (int)plane, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(p + rows, (int)plane, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    exchange_time += MPI_Wtime() - start;
}

static void spmv(const double *p, double *result) {
    double start = MPI_Wtime();
    for (long row = 0; row < rows; row++) {
        double sum = 0;
        for (long k = first[row]; k < first[row + 1]; k++) sum += value[k] * p[column[k]];
        result[row] = sum;
    }
    spmv_flops += 2.0 * first[rows];
    spmv_time += MPI_Wtime() - start;
}

static double ddot(const double *a, const double *b) {
    double start = MPI_Wtime(), mine = 0, all = 0;
    for (long i = 0; i < rows; i++) mine += a[i] * b[i];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    ddot_flops += 2.0 * rows;
    ddot_time += MPI_Wtime() - start;
    return all;
}

/* w = a + beta b */
static void waxpby(const double *a, double beta, const double *b, double *w) {
    double start = MPI_Wtime();
    for (long i = 0; i < rows; i++) w[i] = a[i] + beta * b[i];
    waxpby_flops += 2.0 * rows;
    waxpby_time += MPI_Wtime() - start;
}

static void report_solver(const char *what, double seconds, double flops) {
    printf("@ %s_time %d %.6f\n@ %s_mflops %d %.1f\n", what, size, seconds, what, size, seconds > 0 ? flops / seconds / 1e6 : 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 5) {
        if (rank == 0) fprintf(stderr, "cg NX NY NZ ITERATIONS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    nx = atoi(argv[1]), ny = atoi(argv[2]), nz = atoi(argv[3]);
    int iterations = atoi(argv[4]);
    plane = (long)nx * ny, rows = plane * nz;
    pin_rank(rank);
    double *b = vector(), *x = vector(), *r = vector(), *q = vector(), *p = vector();
    build(b);
    /* x = 0: the residual is b. */
    memcpy(r, b, rows * sizeof(double));
    memcpy(p + plane, r, rows * sizeof(double));
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), rr = ddot(r, r), initial = rr;
    for (int i = 0; i < iterations; i++) {
        exchange(p);
        spmv(p, q);
        double alpha = rr / ddot(p + plane, q);
        waxpby(x, alpha, p + plane, x);
        waxpby(r, -alpha, q, r);
        double before = rr;
        rr = ddot(r, r);
        waxpby(r, rr / before, p + plane, p + plane);
    }
    double total = MPI_Wtime() - start, wrong = 0, worst = 0;
    for (long i = 0; i < rows; i++) wrong = fmax(wrong, fabs(x[i] - 1));
    MPI_Reduce(&wrong, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        report_solver("total", total, ddot_flops + waxpby_flops + spmv_flops);
        report_solver("ddot", ddot_time, ddot_flops);
        report_solver("waxpby", waxpby_time, waxpby_flops);
        report_solver("spmv", spmv_time, spmv_flops);
        printf("@ exchange_time %d %.6f\n", size, exchange_time);
        printf("= converged %s\n", worst < 1e-6 && rr < 1e-12 * initial ? "yes" : "no");
    }
    MPI_Finalize();
    return 0;
}
