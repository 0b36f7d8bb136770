/* A rank forks children that end without exec: by _exit, and by the handlers of exit, which finalize MPI. MPI is the parent's alone. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void finalize(void) {
    int finalized;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Finalize();
}

int main(int argc, char **argv) {
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    atexit(finalize);
    for (int round = 0; round < 20; round++) {
        /* The last rank alone, then all. */
        if (rank == size - 1 || round % 2) {
            int status, seen = -1;
            pid_t child = fork();
            if (child == 0) {
                MPI_Comm_rank(MPI_COMM_WORLD, &seen);
                if (seen != rank) _exit(9);
                if (round % 4 < 2) exit(3);
                _exit(3);
            }
            waitpid(child, &status, 0);
            wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 3;
        }
        int sum = 0, one = 1 << (round % 3);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != size * one;
    }
    int all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf(all ? "%d checks failed\n" : "all checks hold\n", all);
    return 0;
}
