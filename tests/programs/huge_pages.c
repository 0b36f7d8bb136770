/* huge_pages ROUNDS: two ranks send each other large messages out of and into the same memory, so often. Each says whether it has huge pages. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20, MESSAGES = 8 };

/* kB of huge pages in the area that `address` lies in, be it the process's own or mapped from a file. */
static long huge_kb(const void *address)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    int inside = 0;
    long kb = 0, more;
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from <= (unsigned long)address && (unsigned long)address < to;
        else if (inside && (sscanf(line, "AnonHugePages: %ld", &more) == 1 || sscanf(line, "ShmemPmdMapped: %ld", &more) == 1))
            kb += more;
    }
    fclose(maps);
    return kb;
}

int main(int argc, char **argv)
{
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *memory = malloc((size_t)MESSAGES * BYTES);
    memset(memory, rank, (size_t)MESSAGES * BYTES);
    for (int round = 0; round < rounds; round++)
        for (int at = 0; at < MESSAGES; at++)
            if (rank == round % 2)
                MPI_Send(memory + (size_t)at * BYTES, BYTES, MPI_BYTE, 1 - rank, at, MPI_COMM_WORLD);
            else
                MPI_Recv(memory + (size_t)at * BYTES, BYTES, MPI_BYTE, 1 - rank, at, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int mine = huge_kb(memory + MESSAGES * BYTES / 2) > 0, of[2];
    MPI_Gather(&mine, 1, MPI_INT, of, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int other = 0; rank == 0 && other < 2; other++)
        printf("rank %d: %s\n", other, of[other] ? "huge pages" : "small pages");
    MPI_Finalize();
    return 0;
}
