/* Rank 0 waits, outside MPI, for a word of shared memory that rank 1 writes: "late" after it has got a message, from anybody, that comes later than rank 0's clock;
   "soon" before it waits for anything; "named" after it has got one that it asks rank 0 for: on links that are not shared it is known when that comes. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

static volatile int *flag;

__attribute__((noinline)) static void wait_for_the_flag(void)
{
    while (!*flag)
        ;
}

int main(int argc, char **argv)
{
    int rank, word = 0, soon = argc > 2 && !strcmp(argv[2], "soon"), named = argc > 2 && !strcmp(argv[2], "named");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096))
        return 1;
    flag = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (flag == MAP_FAILED)
        return 1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        wait_for_the_flag();
        printf("seen\n");
    } else if (rank == 1) {
        if (soon)
            *flag = 1;
        MPI_Recv(&word, 1, MPI_INT, named ? 0 : MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        *flag = 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
