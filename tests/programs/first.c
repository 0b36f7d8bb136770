/* Several receives alike, posted again as they are taken: messages of one sender are seen in the order in which it has sent them, by the calls that take
 * one of several requests. (The standard lets them choose. HPCC's MPIRandomAccess loses messages otherwise.) */
#include "t.h"
enum { RECEIVES = 4, MESSAGES = 60 };

/* The next of them that is complete, however it is asked for. */
static int taken(int how, MPI_Request *q, MPI_Status *st) {
    int index = MPI_UNDEFINED, flag = 0;
    while (how != 0 && !flag) MPI_Testany(RECEIVES + 1, q, &index, &flag, st);
    if (how == 0) MPI_Waitany(RECEIVES + 1, q, &index, st);
    return index;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Status st;
    MPI_Request q[RECEIVES + 1];
    int in[RECEIVES + 1][2], next = (t_rank + 1) % t_size, *seen = calloc(t_size, sizeof *seen);
    for (int how = 0; how < 3; how++)
        for (int large = 0; large < 2; large++) {
            int bytes = large ? 200000 : 8, all = MESSAGES * (t_size - 1), left = all, *room = malloc(RECEIVES * 200000);
            MPI_Request *sent = malloc(all * sizeof *sent);
            int n = 0;
            memset(seen, 0, t_size * sizeof *seen);
            for (int i = 0; i < RECEIVES; i++) {
                if (how == 2) MPI_Recv_init(room + i * 50000, bytes, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &q[i]), MPI_Start(&q[i]);
                else MPI_Irecv(room + i * 50000, bytes, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &q[i]);
            }
            /* One that nothing comes for. */
            MPI_Irecv(in[RECEIVES], 8, MPI_BYTE, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &q[RECEIVES]);
            MPI_Barrier(MPI_COMM_WORLD);
            int *numbers = malloc(MESSAGES * (large ? 200000 : 8));
            for (int i = 0; i < MESSAGES; i++) {
                int *number = numbers + i * (bytes / 4);
                number[0] = i;
                for (int peer = 0; peer < t_size; peer++)
                    if (peer != t_rank) MPI_Isend(number, bytes, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &sent[n++]);
            }
            if (!large) MPI_Barrier(MPI_COMM_WORLD);
            for (; left > 0; left--) {
                int i = taken(how, q, &st), *got = room + i * 50000;
                if (i < 0 || i >= RECEIVES) {
                    OK(!"one of the receives");
                    break;
                }
                EQ(got[0], seen[st.MPI_SOURCE]);
                seen[st.MPI_SOURCE]++;
                if (how == 2) MPI_Start(&q[i]);
                else MPI_Irecv(got, bytes, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &q[i]);
            }
            MPI_Waitall(n, sent, MPI_STATUSES_IGNORE);
            for (int i = 0; i <= RECEIVES; i++) {
                MPI_Cancel(&q[i]);
                MPI_Wait(&q[i], &st);
                if (q[i] != MPI_REQUEST_NULL) MPI_Request_free(&q[i]);
            }
            free(room), free(sent), free(numbers);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    /* What is no receive is taken by its place in the list, as ever. */
    int index, a = 0, b = 0;
    MPI_Irecv(&a, 1, MPI_INT, t_rank, 7, MPI_COMM_WORLD, &q[1]);
    MPI_Irecv(&b, 1, MPI_INT, t_rank, 8, MPI_COMM_WORLD, &q[2]);
    MPI_Isend(&next, 1, MPI_INT, t_rank, 7, MPI_COMM_WORLD, &q[0]);
    MPI_Isend(&next, 1, MPI_INT, t_rank, 8, MPI_COMM_WORLD, &q[3]);
    for (int i = 0; i < 4; i++) {
        MPI_Waitany(4, q, &index, MPI_STATUS_IGNORE);
        EQ(index, i);
    }
    MPI_Waitany(4, q, &index, MPI_STATUS_IGNORE);
    EQ(index, MPI_UNDEFINED);
    free(seen);
    return t_end();
}
