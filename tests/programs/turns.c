/* Two ranks of one core that poll. If nothing comes for either they seldom pass the core on; if something has come for the other, at once. */
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
static int rank;
static long switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}
static void tell(const char *what, int well, long count, long of) {
    if (!well) fprintf(stderr, "rank %d: %s: %ld of %ld\n", rank, what, count, of);
    MPI_Allreduce(MPI_IN_PLACE, &well, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: %s\n", what, well ? "few" : "many");
}
int main(int argc, char **argv) {
    enum { POLLS = 20000, MESSAGES = 2000 };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char never[5000];
    int flag, peer = 1 - rank;
    MPI_Request request;
    MPI_Irecv(never, sizeof never, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    long before = switches();
    for (int i = 0; i < POLLS; i++) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    long turns = switches() - before;
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    tell("turns while nothing comes", turns < POLLS / 16, turns, POLLS);

    long polls = 0;
    for (int i = 0; i < MESSAGES; i++) {
        int in = -1, out = i;
        if (rank == 0) MPI_Send(&out, 1, MPI_INT, peer, 2, MPI_COMM_WORLD);
        if (i % 2) {
            MPI_Irecv(&in, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &request);
            for (flag = 0; !flag; polls++) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        } else {
            for (flag = 0; !flag; polls++) MPI_Iprobe(peer, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            MPI_Recv(&in, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (in != i) MPI_Abort(MPI_COMM_WORLD, 3);
        if (rank == 1) MPI_Send(&out, 1, MPI_INT, peer, 2, MPI_COMM_WORLD);
    }
    tell("polls for a message that comes", polls < 8 * MESSAGES, polls, MESSAGES);
    MPI_Finalize();
    return 0;
}
