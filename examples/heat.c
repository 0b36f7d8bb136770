/* Heat in a square plate: rows are dealt out to the ranks, neighbours exchange their edges in each step.
   ./heat [side [steps]]; the sum at the end does not depend on the number of ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int side = argc > 1 ? atoi(argv[1]) : 512, steps = argc > 2 ? atoi(argv[2]) : 200;
    int first = side * rank / size, rows = side * (rank + 1) / size - first;
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    double *old = calloc((rows + 2) * side, sizeof *old), *new = calloc((rows + 2) * side, sizeof *new);
    for (int i = 1; i <= rows; i++)
        for (int j = 0; j < side; j++)
            old[i * side + j] = (first + i - 1) % 64 == 0 ? 1 : 0;
    double begin = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        MPI_Request r[4];
        MPI_Irecv(old, side, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(old + (rows + 1) * side, side, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &r[1]);
        MPI_Isend(old + side, side, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &r[2]);
        MPI_Isend(old + rows * side, side, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &r[3]);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        for (int i = 1; i <= rows; i++)
            for (int j = 1; j < side - 1; j++) {
                int at = i * side + j;
                new[at] = old[at] + 0.2 * (old[at - 1] + old[at + 1] + old[at - side] + old[at + side] - 4 * old[at]);
            }
        double *swap = old;
        old = new;
        new = swap;
    }
    double mine = 0, all, seconds = MPI_Wtime() - begin;
    for (int i = side; i < (rows + 1) * side; i++)
        mine += old[i];
    MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("heat: side %d, %d steps, sum %.6f\n", side, steps, all);
        fprintf(stderr, "heat: %d ranks, %.3f s\n", size, seconds);
    }
    MPI_Finalize();
    return 0;
}
