/* Allgather and alltoall of small blocks, contiguous, strided and in place, many times over; with "differ", ranks that disagree about the size. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;
static MPI_Datatype strided; /* three ints, every second one */

static int value(int from, int to, int i, int time) {
    return from * 100000 + to * 1000 + i * 7 + time;
}

static void expect(const int *data, int step, int from, int to, int count, int time) {
    for (int i = 0; i < count; i++) wrong += data[i * step] != value(from, to, i, time);
}

static void exchange(int blocks, int time) {
    int count = 3 * blocks;
    size_t bytes = (size_t)size * count * 2 * sizeof(int);
    int *out = malloc(bytes), *in = malloc(bytes);
    for (int i = 0; i < count; i++) out[i] = value(rank, 0, i, time);
    memset(in, 0, bytes);
    MPI_Allgather(out, count, MPI_INT, in, blocks, strided, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) expect(in + from * count * 2, 2, from, 0, count, time);
    for (int i = 0; i < count; i++) in[rank * count + i] = value(rank, 1, i, time);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) expect(in + from * count, 1, from, 1, count, time);
    for (int to = 0; to < size; to++)
        for (int i = 0; i < count; i++) out[to * count + i] = value(rank, to, i, time);
    memset(in, 0, bytes);
    MPI_Alltoall(out, count, MPI_INT, in, blocks, strided, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) expect(in + from * count * 2, 2, from, rank, count, time);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, out, count, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) expect(out + from * count, 1, from, rank, count, time);
    free(out), free(in);
}

/* Each rank must hear of it, and nobody may wait for ever. */
static void differ(void) {
    char out[16] = {0}, *in = malloc(16 * size);
    int class = MPI_SUCCESS, code;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Allgather(out, rank == 1 ? 4 : 8, MPI_CHAR, in, rank == 1 ? 4 : 8, MPI_CHAR, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    wrong += class != MPI_ERR_TRUNCATE;
    /* Rank 1 gives more than all want, itself included. */
    static char much[1 << 20];
    class = MPI_SUCCESS;
    code = MPI_Allgather(much, rank == 1 ? (int)sizeof much : 8, MPI_CHAR, in, 8, MPI_CHAR, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    wrong += class != MPI_ERR_TRUNCATE;
    free(in);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Datatype vector;
    MPI_Type_vector(3, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 6 * sizeof(int), &strided);
    MPI_Type_commit(&strided);
    if (argc > 1 && strcmp(argv[1], "differ") == 0) differ();
    for (int time = 0; time < 20; time++)
        for (int blocks = 1; blocks < 500; blocks = blocks * 3 + 1) exchange(blocks, time);
    int all;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && all == 0) puts("all checks hold");
    if (rank == 0 && all != 0) printf("%d values are wrong\n", all);
    MPI_Type_free(&strided), MPI_Type_free(&vector);
    MPI_Finalize();
    return 0;
}
