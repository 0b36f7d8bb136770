/* Random traffic from a seed: everybody knows the whole plan, so that every message, its order and its bytes can be
 * checked. Sizes from nothing to beyond every protocol switch, all send modes, wildcards. traffic [rounds] [seed] */
#include "t.h"
static uint64_t state;
static unsigned draw(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % below);
}
static int draw_size(void) {
    unsigned kind = draw(100);
    return kind < 50 ? (int)draw(300) : kind < 80 ? (int)draw(20000) : kind < 97 ? (int)draw(200000) : (int)draw(2000000);
}
struct message { int from, to, tag, size, mode, number; };
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 10, seed = argc > 2 ? atoi(argv[2]) : 1, per_round = 12 * t_size;
    struct message *plan = malloc(per_round * sizeof *plan);
    MPI_Request *q = malloc(2 * per_round * sizeof *q);
    void **buffers = calloc(2 * per_round, sizeof *buffers);
    long messages = 0, bytes = 0;
    for (int round = 0; round < rounds; round++) {
        state = seed * 1000003u + round;
        int wild = draw(3), total = 0;
        for (int i = 0; i < per_round; i++)
            plan[i] = (struct message){draw(t_size), draw(t_size), draw(4), draw_size(), draw(3), i};
        PART("a round");
        if (!wild)
            for (int i = 0; i < per_round; i++)
                if (plan[i].to == t_rank) {
                    buffers[total] = malloc(plan[i].size + 1);
                    MPI_Irecv(buffers[total], plan[i].size, MPI_BYTE, plan[i].from, plan[i].tag, MPI_COMM_WORLD, &q[total]);
                    total++;
                }
        for (int i = 0; i < per_round; i++)
            if (plan[i].from == t_rank) {
                buffers[total] = malloc(plan[i].size + 1);
                t_fill(buffers[total], plan[i].size, t_rank, plan[i].number);
                if (plan[i].mode == 0 || wild) MPI_Isend(buffers[total], plan[i].size, MPI_BYTE, plan[i].to, plan[i].tag, MPI_COMM_WORLD, &q[total]);
                else if (plan[i].mode == 1) MPI_Issend(buffers[total], plan[i].size, MPI_BYTE, plan[i].to, plan[i].tag, MPI_COMM_WORLD, &q[total]);
                else MPI_Isend(buffers[total], plan[i].size, MPI_BYTE, plan[i].to, plan[i].tag, MPI_COMM_WORLD, &q[total]);
                total++;
            }
        if (wild) {
            /* Receive whatever comes; of each sender and tag the messages must come in the plan's order. */
            int expected = 0, *next = calloc(t_size * 4, sizeof *next);
            for (int i = 0; i < per_round; i++) expected += plan[i].to == t_rank;
            for (; expected; expected--) {
                MPI_Status st;
                int n;
                MPI_Message taken = MPI_MESSAGE_NULL;
                if (wild == 1) MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
                else MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &taken, &st);
                MPI_Get_count(&st, MPI_BYTE, &n);
                char *in = malloc(n + 1);
                if (wild == 1) MPI_Recv(in, n, MPI_BYTE, st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                else MPI_Mrecv(in, n, MPI_BYTE, &taken, MPI_STATUS_IGNORE);
                int *at = &next[st.MPI_SOURCE * 4 + st.MPI_TAG];
                while (*at < per_round && !(plan[*at].from == st.MPI_SOURCE && plan[*at].to == t_rank && plan[*at].tag == st.MPI_TAG)) ++*at;
                if (OK(*at < per_round)) {
                    EQ(n, plan[*at].size);
                    EQ(t_wrong(in, n, st.MPI_SOURCE, plan[*at].number), -1);
                    ++*at;
                }
                messages++, bytes += n;
                free(in);
            }
            free(next);
        }
        MPI_Waitall(total, q, MPI_STATUSES_IGNORE);
        for (int i = 0, k = 0; !wild && i < per_round; i++)
            if (plan[i].to == t_rank) {
                EQ(t_wrong(buffers[k], plan[i].size, plan[i].from, plan[i].number), -1);
                messages++, bytes += plan[i].size, k++;
            }
        for (int k = 0; k < total; k++) free(buffers[k]), buffers[k] = NULL;
        if (wild) MPI_Barrier(MPI_COMM_WORLD); /* a wildcard must not take the next round's messages */
    }
    say("%ld messages, %ld bytes", messages, bytes);
    return t_end();
}
