/* What tests and probes must say, whatever else is left open: of null and inactive requests, of what has been told to be complete, of a message that has been found. */
#include "t.h"
enum { ROUNDS = 60 };
static void nothing_to_wait_for(void) {
    MPI_Request q = MPI_REQUEST_NULL, three[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status s, ss[3];
    int flag, index, count, indices[3], x;
    MPI_Test(&q, &flag, &s);
    OK(flag);
    MPI_Testall(3, three, &flag, ss);
    OK(flag);
    MPI_Testany(3, three, &index, &flag, &s);
    OK(flag && index == MPI_UNDEFINED);
    MPI_Testsome(3, three, &count, indices, ss);
    EQ(count, MPI_UNDEFINED);
    MPI_Iprobe(MPI_PROC_NULL, 6, MPI_COMM_WORLD, &flag, &s);
    OK(flag);
    MPI_Recv_init(&x, 1, MPI_INT, t_rank, 5, MPI_COMM_WORLD, &q);
    MPI_Test(&q, &flag, &s);
    OK(flag);
    MPI_Request_free(&q);
}
static void told_once(void) {
    MPI_Request q[2];
    MPI_Status s;
    int flag, index, x = 1, y = 0, z = 0;
    MPI_Irecv(&y, 1, MPI_INT, t_rank, 5, MPI_COMM_WORLD, &q[0]);
    MPI_Irecv(&z, 1, MPI_INT, t_rank, 7, MPI_COMM_WORLD, &q[1]);
    MPI_Send(&x, 1, MPI_INT, t_rank, 5, MPI_COMM_WORLD);
    do MPI_Request_get_status(q[0], &flag, &s);
    while (!flag);
    EQ(s.MPI_TAG, 5);
    MPI_Request_get_status(q[0], &flag, &s);
    OK(flag && s.MPI_TAG == 5);
    MPI_Testany(2, q, &index, &flag, &s);
    OK(flag && index == 0 && s.MPI_TAG == 5 && y == 1);
    MPI_Send(&x, 1, MPI_INT, t_rank, 7, MPI_COMM_WORLD);
    MPI_Wait(&q[1], &s);
    /* A send that is over as soon as it begins. */
    MPI_Irecv(&y, 1, MPI_INT, t_rank, 8, MPI_COMM_WORLD, &q[1]);
    MPI_Isend(&x, 1, MPI_INT, t_rank, 8, MPI_COMM_WORLD, &q[0]);
    do MPI_Request_get_status(q[0], &flag, &s);
    while (!flag);
    MPI_Test(&q[0], &flag, &s);
    OK(flag);
    MPI_Wait(&q[1], &s);
}
static void found_once(void) {
    MPI_Request q;
    MPI_Message m;
    MPI_Status s;
    int flag, x = 2, y = 0;
    MPI_Isend(&x, 1, MPI_INT, t_rank, 6, MPI_COMM_WORLD, &q);
    do MPI_Iprobe(t_rank, 6, MPI_COMM_WORLD, &flag, &s);
    while (!flag);
    MPI_Iprobe(t_rank, 6, MPI_COMM_WORLD, &flag, &s);
    OK(flag);
    MPI_Improbe(t_rank, 6, MPI_COMM_WORLD, &flag, &m, &s);
    if (OK(flag)) MPI_Mrecv(&y, 1, MPI_INT, &m, &s);
    else MPI_Recv(&y, 1, MPI_INT, t_rank, 6, MPI_COMM_WORLD, &s);
    EQ(y, 2);
    MPI_Wait(&q, &s);
}
/* With their statuses. */
static void several(void) {
    MPI_Request q[3];
    MPI_Status s, ss[3];
    int flag, index, count, indices[3], x = 3, y[3];
    for (int i = 0; i < 3; i++) MPI_Irecv(&y[i], 1, MPI_INT, t_rank, 10 + i, MPI_COMM_WORLD, &q[i]);
    for (int i = 0; i < 3; i++) MPI_Send(&x, 1, MPI_INT, t_rank, 10 + i, MPI_COMM_WORLD);
    do MPI_Request_get_status_any(3, q, &index, &flag, &s);
    while (!flag);
    EQ(s.MPI_TAG, 10 + index);
    do MPI_Request_get_status_some(3, q, &count, indices, ss);
    while (count < 3);
    for (int i = 0; i < 3; i++) EQ(ss[i].MPI_TAG, 10 + indices[i]);
    do MPI_Request_get_status_all(3, q, &flag, ss);
    while (!flag);
    for (int i = 0; i < 3; i++) EQ(ss[i].MPI_TAG, 10 + i);
    MPI_Waitall(3, q, ss);
    for (int i = 0; i < 3; i++) EQ(ss[i].MPI_TAG, 10 + i);
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    for (int i = 0; i < ROUNDS; i++) {
        nothing_to_wait_for();
        told_once();
        found_once();
        several();
    }
    return t_end();
}
