/* MPI_THREAD_MULTIPLE: six threads of each rank, each waiting in its own way at the same time: probing (two of them),
 * polling, in blocking and nonblocking collectives, for large messages. */
#include "t.h"
#include <pthread.h>
enum { THREADS = 6, ROUNDS = 40, LARGE = 200000 };
static MPI_Comm own[THREADS];
static unsigned char large_out[LARGE], large_in[LARGE];
static void *work(void *arg) {
    int id = (int)(long)arg, to = (t_rank + 1) % t_size, from = (t_rank + t_size - 1) % t_size;
    MPI_Status s;
    for (int i = 0; i < ROUNDS; i++) {
        int out = t_rank * 1000 + i, in = -1;
        MPI_Request q[2];
        if (id < 2) {
            MPI_Isend(&out, 1, MPI_INT, to, id, MPI_COMM_WORLD, q);
            MPI_Probe(from, id, MPI_COMM_WORLD, &s);
            MPI_Recv(&in, 1, MPI_INT, s.MPI_SOURCE, s.MPI_TAG, MPI_COMM_WORLD, &s);
            MPI_Wait(q, &s);
            EQ(in, from * 1000 + i);
        } else if (id == 2) {
            int over = 0;
            MPI_Irecv(&in, 1, MPI_INT, from, id, MPI_COMM_WORLD, q);
            MPI_Isend(&out, 1, MPI_INT, to, id, MPI_COMM_WORLD, q + 1);
            while (!over) MPI_Testall(2, q, &over, MPI_STATUSES_IGNORE);
            EQ(in, from * 1000 + i);
        } else if (id == 3) {
            MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_MAX, own[id]);
            EQ(in, (t_size - 1) * 1000 + i);
            MPI_Barrier(own[id]);
        } else if (id == 4) {
            memset(large_out, i + t_rank, LARGE);
            MPI_Sendrecv(large_out, LARGE, MPI_BYTE, to, id, large_in, LARGE, MPI_BYTE, from, id, MPI_COMM_WORLD, &s);
            EQ(large_in[0], (unsigned char)(i + from));
            EQ(large_in[LARGE - 1], (unsigned char)(i + from));
        } else {
            MPI_Ibcast(&out, 1, MPI_INT, i % t_size, own[id], q);
            MPI_Wait(q, &s);
            EQ(out, i % t_size * 1000 + i);
        }
    }
    return NULL;
}
int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank), MPI_Comm_size(MPI_COMM_WORLD, &t_size);
    EQ(provided, MPI_THREAD_MULTIPLE);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&own[i]);
    say("threads done");
    return t_end();
}
