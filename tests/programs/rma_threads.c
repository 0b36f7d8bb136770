/* MPI_THREAD_MULTIPLE where the library provides it: threads of a rank lock, accumulate and wait in windows of their own and
 * in a common one, while another thread sends messages. */
#include "t.h"
#include <pthread.h>
enum { T = 3, ROUNDS = 60, BYTES = 65536 };
static MPI_Win own[T], common;
static MPI_Comm comms[T];
static long *mine[T], *counter, sums[T];
static void *work(void *arg) {
    long id = (long)arg, one = 1, old, last = -1;
    int right = (t_rank + 1) % t_size, left = (t_rank + t_size - 1) % t_size;
    for (int i = 0; i < ROUNDS; i++) {
        long value;
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, common);
        MPI_Win_flush(0, common);
        OK(old > last);
        last = old, sums[id] += old;
        /* A counter under an exclusive lock, somewhere else each time. */
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, i % t_size, 0, own[id]);
        MPI_Get(&value, 1, MPI_LONG, i % t_size, 0, 1, MPI_LONG, own[id]);
        MPI_Win_flush(i % t_size, own[id]);
        value++;
        MPI_Put(&value, 1, MPI_LONG, i % t_size, 0, 1, MPI_LONG, own[id]);
        MPI_Win_unlock(i % t_size, own[id]);
        if (i % 10 == id) {
            int out = t_rank * 100 + i, in = -1;
            MPI_Sendrecv(&out, 1, MPI_INT, right, (int)id, &in, 1, MPI_INT, left, (int)id, comms[id], MPI_STATUS_IGNORE);
            EQ(in, left * 100 + i);
        }
    }
    MPI_Barrier(comms[id]);
    /* Fences and post-start in each thread's window. */
    MPI_Group all, to, from;
    MPI_Comm_group(comms[id], &all);
    MPI_Group_incl(all, 1, &right, &to);
    MPI_Group_incl(all, 1, &left, &from);
    for (int i = 0; i < 20; i++) {
        long value = i * 100 + t_rank;
        MPI_Win_post(from, 0, own[id]);
        MPI_Win_start(to, 0, own[id]);
        MPI_Put(&value, 1, MPI_LONG, right, 1, 1, MPI_LONG, own[id]);
        MPI_Win_complete(own[id]);
        MPI_Win_wait(own[id]);
        EQ(mine[id][1], i * 100 + left);
    }
    MPI_Group_free(&all), MPI_Group_free(&to), MPI_Group_free(&from);
    return NULL;
}
int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank), MPI_Comm_size(MPI_COMM_WORLD, &t_size);
    MPI_Win_allocate(BYTES, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &common);
    counter[0] = 0;
    for (int i = 0; i < T; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        MPI_Win_allocate(BYTES, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &mine[i], &own[i]);
        mine[i][0] = mine[i][1] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, common);
    pthread_t threads[T];
    for (long i = 0; i < T; i++) {
        if (provided == MPI_THREAD_MULTIPLE) pthread_create(&threads[i], NULL, work, (void *)i);
        else work((void *)i);
    }
    for (int i = 0; i < T && provided == MPI_THREAD_MULTIPLE; i++) pthread_join(threads[i], NULL);
    MPI_Win_unlock_all(common);
    MPI_Barrier(MPI_COMM_WORLD);
    long sum = 0, total = 0, all = (long)T * ROUNDS * t_size;
    for (int i = 0; i < T; i++) sum += sums[i];
    MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    EQ(total, all * (all - 1) / 2);
    for (int i = 0; i < T; i++) {
        long here = mine[i][0], sumof = 0;
        MPI_Allreduce(&here, &sumof, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        EQ(sumof, ROUNDS * t_size);
        MPI_Win_free(&own[i]);
        MPI_Comm_free(&comms[i]);
    }
    MPI_Win_free(&common);
    say("threads done");
    return t_end();
}
