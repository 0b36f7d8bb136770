/* What a job of several nodes cannot do yet: an MPI error each, on all ranks, and the program goes on. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static int bad;
static void refused(const char *call, int code, const char *why) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
    if (code == MPI_SUCCESS || !strlen(text)) bad++, printf("%s: code %d, %s (%s)\n", call, code, text, why);
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, all, shared, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    double *base;
    MPI_Win win;
    refused("MPI_Win_allocate_shared", MPI_Win_allocate_shared(80, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), "two nodes");
    /* On the ranks of one node windows work. */
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &shared);
    if (shared >= size) bad++, printf("rank %d shares memory with %d of %d ranks\n", rank, shared, size);
    if (MPI_Win_allocate_shared(8, 8, MPI_INFO_NULL, node, &base, &win) != MPI_SUCCESS) bad++;
    else {
        MPI_Win_fence(0, win);
        *base = rank;
        MPI_Win_fence(0, win);
        MPI_Win_free(&win);
    }
    MPI_Comm_free(&node);
    /* And everything else goes on. */
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size * (size - 1) / 2) bad++;
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && !all) printf("all refused\n");
    MPI_Finalize();
    return all != 0;
}
