/* Very many messages under way at once: posted receives, and sends that nobody receives for long. outstanding [messages] */
#include "t.h"
#include <time.h>
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int count = argc > 1 ? atoi(argv[1]) : 100000;
    int *values = malloc(count * sizeof *values);
    MPI_Request *q = malloc(count * sizeof *q);
    PART("posted receives");
    if (t_rank == 0)
        for (int i = 0; i < count; i++) values[i] = -1, MPI_Irecv(&values[i], 1, MPI_INT, 1, i % 30000, MPI_COMM_WORLD, &q[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count && t_rank == 1; i++) MPI_Send(&i, 1, MPI_INT, 0, i % 30000, MPI_COMM_WORLD);
    if (t_rank == 0) MPI_Waitall(count, q, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count && t_rank == 0; i++)
        if (!EQ(values[i], i)) break;
    PART("unexpected messages");
    for (int i = 0; i < count && t_rank == 1; i++) values[i] = 2 * i, MPI_Isend(&values[i], 1, MPI_INT, 0, i % 30000, MPI_COMM_WORLD, &q[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    /* In order: the real libraries look through them one by one. */
    for (int i = 0; i < count && t_rank == 0; i++) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, 1, i % 30000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!EQ(value, 2 * i)) break;
    }
    if (t_rank == 1) MPI_Waitall(count, q, MPI_STATUSES_IGNORE);
    say("%d messages", count);
    free(values), free(q);
    return t_end();
}
