/* Who sends to me? Rounds of NBX (Hoefler, Siebert, Lumsdaine 2010): synchronous sends, probing for anybody's, a nonblocking barrier once the own sends
 * have been received. All rounds use one tag, as dolfinx's do, so nothing but the order of events keeps a message of the next round out of this
 * one: a rank that has not looked whether the barrier is over must not be shown it. nbx [rounds] */
#include "t.h"
/* Does `from` send to `to` in this round? The same for all who ask. */
static int sends(unsigned round, unsigned from, unsigned to) {
    unsigned mixed = (round * 2654435761u) ^ (from * 40503u + to * 9973u + 12345u);
    mixed ^= mixed >> 15;
    return from != to && mixed * 2246822519u >> 16 & 1;
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 200, early = 0, all_early;
    int *out = malloc(t_size * sizeof *out);
    MPI_Request *sent = malloc(t_size * sizeof *sent), barrier;
    PART("rounds");
    for (int round = 0; round < rounds; round++) {
        int count = 0, wanted = 0, got = 0, flag, waits = 0, over = 0;
        for (int peer = 0; peer < t_size; peer++) {
            wanted += sends(round, peer, t_rank);
            if (!sends(round, t_rank, peer)) continue;
            out[count] = round;
            MPI_Issend(&out[count], 1, MPI_INT, peer, 4, MPI_COMM_WORLD, &sent[count]);
            count++;
        }
        while (!over) {
            MPI_Status status;
            MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &flag, &status);
            if (flag) {
                int of;
                MPI_Recv(&of, 1, MPI_INT, status.MPI_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                early += of != round;
                got++;
            }
            if (waits) MPI_Test(&barrier, &over, MPI_STATUS_IGNORE);
            else if (MPI_Testall(count, sent, &waits, MPI_STATUSES_IGNORE) == MPI_SUCCESS && waits) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
        }
        if (!early) EQ(got, wanted);
    }
    MPI_Allreduce(&early, &all_early, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    /* The race is the program's: a disturbed machine may show a few. */
    STRICT(all_early <= rounds / 20);
    free(out), free(sent);
    return t_end();
}
