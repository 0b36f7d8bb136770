/* What files of MPI take in virtual time, in nanoseconds by rank 0, and that their contents are right. argv[1]: a file. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 4096

int main(int argc, char **argv)
{
    int rank, size, wrong = 0;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *data = malloc(N * sizeof *data), *back = malloc(N * sizeof *back);
    for (int i = 0; i < N; i++)
        data[i] = rank * N + i;
    int code = MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (code) {
        printf("not opened\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Offset mine = (MPI_Offset)rank * N * sizeof *data;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    MPI_File_write_at(file, mine, data, N, MPI_INT, MPI_STATUS_IGNORE);
    double wrote = MPI_Wtime() - begun;
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    begun = MPI_Wtime();
    MPI_File_read_at(file, (mine + N * sizeof *data) % ((MPI_Offset)size * N * sizeof *data), back, N, MPI_INT, MPI_STATUS_IGNORE);
    double read = MPI_Wtime() - begun;
    for (int i = 0; i < N; i++)
        wrong += back[i] != (rank + 1) % size * N + i;
    /* Collectively, every rank's every size-th number. */
    MPI_Datatype type;
    MPI_Type_vector(N, 1, size, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, rank * sizeof *data, MPI_INT, type, "native", MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    begun = MPI_Wtime();
    MPI_File_write_all(file, data, N, MPI_INT, MPI_STATUS_IGNORE);
    double all = MPI_Wtime() - begun;
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    memset(back, 0, N * sizeof *back);
    MPI_File_read_all(file, back, N, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++)
        wrong += back[i] != data[i];
    MPI_File_close(&file);
    int sum;
    MPI_Reduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong, write %.0f read %.0f collective %.0f end %.0f\n", sum, wrote * 1e9, read * 1e9, all * 1e9, MPI_Wtime() * 1e9);
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
