/* stencil FIGURE X SIDE STEPS LOAD: a five-point stencil on SIDE x SIDE doubles, in two dimensions, one block per rank, halos
 * exchanged with the four neighbours before each step; rank 0 does its computation LOAD times. Milliseconds for all steps.
 * The values do not depend on the number of ranks: the checksum is the same everywhere. */
#include "bench.h"
#include <stdint.h>
static int side, rank, dims[2], coords[2], low[2], length[2], width;
static double *now_values, *next_values;
enum { UP, DOWN, LEFT, RIGHT };
static int neighbour[4];
static double *column[4]; /* what goes and comes on the left and on the right */

static double *at(double *values, int i, int j) { return values + (long)i * width + j; }

static int rank_at(int i, int j) {
    return i < 0 || j < 0 || i >= dims[0] || j >= dims[1] ? MPI_PROC_NULL : i * dims[1] + j;
}

static void fill(void) {
    for (int i = 0; i < length[0] + 2; i++)
        for (int j = 0; j < width; j++) {
            int gi = low[0] + i - 1, gj = low[1] + j - 1;
            int inside = gi >= 0 && gj >= 0 && gi < side && gj < side;
            *at(now_values, i, j) = inside ? (gi * 31 + gj * 17) % 1009 / 7.0 : 0;
            *at(next_values, i, j) = 0;
        }
}

static void exchange(void) {
    MPI_Request requests[8];
    double *v = now_values;
    for (int i = 0; i < length[0]; i++) {
        column[0][i] = *at(v, i + 1, 1);
        column[1][i] = *at(v, i + 1, length[1]);
    }
    MPI_Irecv(at(v, 0, 1), length[1], MPI_DOUBLE, neighbour[UP], DOWN, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(at(v, length[0] + 1, 1), length[1], MPI_DOUBLE, neighbour[DOWN], UP, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(column[2], length[0], MPI_DOUBLE, neighbour[LEFT], RIGHT, MPI_COMM_WORLD, &requests[2]);
    MPI_Irecv(column[3], length[0], MPI_DOUBLE, neighbour[RIGHT], LEFT, MPI_COMM_WORLD, &requests[3]);
    MPI_Isend(at(v, 1, 1), length[1], MPI_DOUBLE, neighbour[UP], UP, MPI_COMM_WORLD, &requests[4]);
    MPI_Isend(at(v, length[0], 1), length[1], MPI_DOUBLE, neighbour[DOWN], DOWN, MPI_COMM_WORLD, &requests[5]);
    MPI_Isend(column[0], length[0], MPI_DOUBLE, neighbour[LEFT], LEFT, MPI_COMM_WORLD, &requests[6]);
    MPI_Isend(column[1], length[0], MPI_DOUBLE, neighbour[RIGHT], RIGHT, MPI_COMM_WORLD, &requests[7]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < length[0]; i++) {
        if (neighbour[LEFT] != MPI_PROC_NULL) *at(v, i + 1, 0) = column[2][i];
        if (neighbour[RIGHT] != MPI_PROC_NULL) *at(v, i + 1, length[1] + 1) = column[3][i];
    }
}

static void steps(int count, int load) {
    for (int step = 0; step < count; step++) {
        exchange();
        for (int i = 0; i < (rank == 0 ? load : 1); i++) {
            five_points(now_values, next_values, length[0], length[1]);
            __asm__ volatile("" ::: "memory"); /* each time anew */
        }
        double *swap = now_values;
        now_values = next_values, next_values = swap;
    }
}

int main(int argc, char **argv) {
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 6) {
        if (rank == 0) fprintf(stderr, "stencil FIGURE X SIDE STEPS LOAD\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int count = atoi(argv[4]), load = atoi(argv[5]);
    side = atoi(argv[3]);
    MPI_Dims_create(size, 2, dims);
    coords[0] = rank / dims[1], coords[1] = rank % dims[1];
    for (int d = 0; d < 2; d++) {
        low[d] = (long)side * coords[d] / dims[d];
        length[d] = (long)side * (coords[d] + 1) / dims[d] - low[d];
    }
    width = length[1] + 2;
    neighbour[UP] = rank_at(coords[0] - 1, coords[1]), neighbour[DOWN] = rank_at(coords[0] + 1, coords[1]);
    neighbour[LEFT] = rank_at(coords[0], coords[1] - 1), neighbour[RIGHT] = rank_at(coords[0], coords[1] + 1);
    now_values = malloc(sizeof(double) * (length[0] + 2) * width);
    next_values = malloc(sizeof(double) * (length[0] + 2) * width);
    for (int i = 0; i < 4; i++) column[i] = malloc(sizeof(double) * length[0]);
    pin_rank(rank);
    fill();
    steps(count / 10, 1);
    fill();
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    steps(count, load);
    MPI_Barrier(MPI_COMM_WORLD);
    double ms = (now_us() - start) / 1e3;
    /* The sum of the bits of all points: independent of their order. */
    uint64_t mine = 0, all = 0;
    for (int i = 1; i <= length[0]; i++)
        for (int j = 1; j <= length[1]; j++) {
            uint64_t bits;
            memcpy(&bits, at(now_values, i, j), 8);
            mine += bits * (2 * (uint64_t)((long)(low[0] + i - 1) * side + low[1] + j - 1) + 1);
        }
    MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("= checksum %016llx\n@ %s %s %.4f\n", (unsigned long long)all, argv[1], argv[2], ms);
    MPI_Finalize();
    return 0;
}
