/* Nonblocking collectives: many at once, completed out of order, mixed with messages and blocking collectives, freed early. */
#include "t.h"
enum { K = 24 };
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Request q[K + 2];
    int in[K], out[K], flag, index, next = (t_rank + 1) % t_size, prev = (t_rank + t_size - 1) % t_size;
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);

    PART("many allreduces outstanding, waited for backwards");
    for (int k = 0; k < K; k++) {
        in[k] = t_rank + k, out[k] = -1;
        MPI_Iallreduce(&in[k], &out[k], 1, MPI_INT, MPI_SUM, k % 2 ? MPI_COMM_WORLD : other, &q[k]);
    }
    for (int k = K - 1; k >= 0; k--) {
        MPI_Wait(&q[k], MPI_STATUS_IGNORE);
        EQ(out[k], t_size * (t_size - 1) / 2 + t_size * k);
    }

    PART("different kinds interleaved with messages, Waitall over both");
    int token = -1, root_value = t_rank == t_size - 1 ? 4711 : 0, gathered[t_size], mine = t_rank * t_rank;
    MPI_Ibcast(&root_value, 1, MPI_INT, t_size - 1, MPI_COMM_WORLD, &q[0]);
    MPI_Irecv(&token, 1, MPI_INT, prev, 3, MPI_COMM_WORLD, &q[1]);
    MPI_Iallgather(&mine, 1, MPI_INT, gathered, 1, MPI_INT, MPI_COMM_WORLD, &q[2]);
    MPI_Isend(&mine, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &q[3]);
    MPI_Ibarrier(MPI_COMM_WORLD, &q[4]);
    MPI_Waitall(5, q, MPI_STATUSES_IGNORE);
    EQ(token, prev * prev);
    EQ(root_value, 4711);
    for (int r = 0; r < t_size; r++) EQ(gathered[r], r * r);

    PART("an ibarrier is not complete before the last one has entered");
    int late = t_size - 1;
    MPI_Request r;
    if (t_rank != late) {
        MPI_Ibarrier(MPI_COMM_WORLD, &r);
        if (t_size > 1) {
            MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
            EQ(flag, 0);
            MPI_Send(&mine, 1, MPI_INT, late, 4, MPI_COMM_WORLD);
        }
    } else {
        for (int i = 0; i < t_size - 1; i++) MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ibarrier(MPI_COMM_WORLD, &r);
    }
    do MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    while (!flag);

    PART("blocking ones while a nonblocking one is open");
    int sum = 0, max = 0;
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    MPI_Allreduce(&t_rank, &max, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    EQ(max, t_size - 1);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    int want = 0;
    for (int i = 0; i < t_size; i++) want += i * i;
    EQ(sum, want);

    PART("Waitany and Testsome over collectives");
    static int big[K][5000];
    for (int k = 0; k < K; k++) {
        if (t_rank == k % t_size) for (int i = 0; i < 5000; i++) big[k][i] = k * i;
        MPI_Ibcast(big[k], 5000, MPI_INT, k % t_size, MPI_COMM_WORLD, &q[k]);
    }
    for (int done = 0; done < K; done++) {
        MPI_Waitany(K, q, &index, MPI_STATUS_IGNORE);
        OK(index >= 0 && big[index][4999] == index * 4999);
    }

    PART("freeing the communicator while a collective on it is open (Open MPI 4.1.4 itself crashes here)");
    MPI_Comm brief;
    MPI_Request idup;
    MPI_Comm_idup(MPI_COMM_WORLD, &brief, &idup);
    MPI_Wait(&idup, MPI_STATUS_IGNORE);
    sum = 0;
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, brief, &r);
    if (getenv("VMPI_JOBID")) MPI_Comm_free(&brief);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (brief != MPI_COMM_NULL) MPI_Comm_free(&brief);
    EQ(sum, want);

    PART("the sum in chunks while computing: overlap with Test");
    static double field[30000], total[30000];
    for (int i = 0; i < 30000; i++) field[i] = t_rank + i;
    for (int chunk = 0; chunk < 30; chunk++) {
        MPI_Iallreduce(field + chunk * 1000, total + chunk * 1000, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &r);
        do {
            volatile double x = 1;
            for (int i = 0; i < 200; i++) x *= 1.0001;
            MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        } while (!flag);
    }
    for (int i = 0; i < 30000; i++) OK(total[i] == t_size * (t_size - 1) / 2.0 + (double)t_size * i);
    MPI_Comm_free(&other);
    say("nonblocking collectives done, sum %d", sum);
    return t_end();
}
