/* MPI_UNIVERSE_SIZE as each rank sees it. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int *size, is_set;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &size, &is_set);
    if (is_set)
        printf("%d\n", *size);
    else
        puts("unset");
    MPI_Finalize();
    return 0;
}
