/* FFTW's MPI transforms as Debian ships them: forward and back, in the forms that differ in what they send. */
#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int rank;

/* A number for a place, the same on any number of ranks. */
static double value(ptrdiff_t i)
{
    return (double)((i * 7919 + 104729) % 10007) / 10007.0;
}

static void say(const char *what, double error, double sum)
{
    double all[2], mine[2] = {error, sum};
    MPI_Reduce(&mine[0], &all[0], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine[1], &all[1], 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %s, |transform|^2 = %.6e\n", what, all[0] < 1e-10 ? "back to the input" : "WRONG", all[1]);
}

/* A complex transform in two or three dimensions; flags choose the transposed order. */
static void transform(const char *what, int rank_of_array, const ptrdiff_t *n, unsigned out, unsigned in)
{
    ptrdiff_t local, start, local1, start1, rows = 1, total = 1;
    for (int d = 0; d < rank_of_array; d++) total *= n[d];
    rows = total / n[0];
    ptrdiff_t room = fftw_mpi_local_size_transposed(rank_of_array, n, MPI_COMM_WORLD, &local, &start, &local1, &start1);
    fftw_complex *a = fftw_alloc_complex(room);
    fftw_plan go = fftw_mpi_plan_dft(rank_of_array, n, a, a, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_ESTIMATE | out);
    fftw_plan back = fftw_mpi_plan_dft(rank_of_array, n, a, a, MPI_COMM_WORLD, FFTW_BACKWARD, FFTW_ESTIMATE | in);
    for (ptrdiff_t i = 0; i < local * rows; i++) a[i] = value(start * rows + i) + I * value(start * rows + i + 1);
    fftw_execute(go);
    ptrdiff_t got = out ? local1 * total / n[1] : local * rows;
    double sum = 0, error = 0;
    for (ptrdiff_t i = 0; i < got; i++) sum += creal(a[i]) * creal(a[i]) + cimag(a[i]) * cimag(a[i]);
    fftw_execute(back);
    for (ptrdiff_t i = 0; i < local * rows; i++)
        error = fmax(error, cabs(a[i] / total - (value(start * rows + i) + I * value(start * rows + i + 1))));
    say(what, error, sum);
    fftw_destroy_plan(go);
    fftw_destroy_plan(back);
    fftw_free(a);
}

static void real_transform(void)
{
    ptrdiff_t n0 = 60, n1 = 42, half = n1 / 2 + 1, local, start;
    ptrdiff_t room = fftw_mpi_local_size_2d(n0, half, MPI_COMM_WORLD, &local, &start);
    double *a = fftw_alloc_real(2 * room), error = 0, sum = 0;
    fftw_complex *b = fftw_alloc_complex(room);
    fftw_plan go = fftw_mpi_plan_dft_r2c_2d(n0, n1, a, b, MPI_COMM_WORLD, FFTW_MEASURE);
    fftw_plan back = fftw_mpi_plan_dft_c2r_2d(n0, n1, b, a, MPI_COMM_WORLD, FFTW_MEASURE);
    fftw_mpi_broadcast_wisdom(MPI_COMM_WORLD);
    for (ptrdiff_t i = 0; i < local; i++)
        for (ptrdiff_t j = 0; j < n1; j++) a[i * 2 * half + j] = value((start + i) * n1 + j);
    fftw_execute(go);
    for (ptrdiff_t i = 0; i < local * half; i++) sum += creal(b[i]) * creal(b[i]) + cimag(b[i]) * cimag(b[i]);
    fftw_execute(back);
    for (ptrdiff_t i = 0; i < local; i++)
        for (ptrdiff_t j = 0; j < n1; j++)
            error = fmax(error, fabs(a[i * 2 * half + j] / (n0 * n1) - value((start + i) * n1 + j)));
    say("real, two dimensions, measured", error, sum);
    fftw_destroy_plan(go);
    fftw_destroy_plan(back);
    fftw_free(a);
    fftw_free(b);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    transform("two dimensions", 2, (ptrdiff_t[]){64, 48}, 0, 0);
    transform("two dimensions, transposed", 2, (ptrdiff_t[]){63, 50}, FFTW_MPI_TRANSPOSED_OUT, FFTW_MPI_TRANSPOSED_IN);
    transform("three dimensions", 3, (ptrdiff_t[]){24, 20, 18}, 0, 0);
    transform("fewer rows than ranks", 2, (ptrdiff_t[]){4, 300}, 0, 0);
    real_transform();
    fftw_mpi_cleanup();
    MPI_Finalize();
    return 0;
}
