/* Large-count functions (which Open MPI does not have), nonblocking exchange, dup with info, environment info. */
#include "t.h"
#include "newer.h"

#ifndef OPEN_MPI
static void p2p(void) {
    PART("p2p");
    int n = 3000, next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size;
    unsigned char *out = malloc(n), *in = malloc(n);
    MPI_Request r[2];
    MPI_Status st, sts[2];
    MPI_Count count;
    t_fill(out, n, t_rank, 1);
    MPI_Irecv_c(in, n, MPI_BYTE, last, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Send_c(out, n, MPI_BYTE, next, 1, MPI_COMM_WORLD);
    MPI_Wait(&r[0], &st);
    EQ(t_wrong(in, n, last, 1), -1);
    MPI_Get_count_c(&st, MPI_INT, &count);
    EQ(count, n / 4);
    MPI_Isend_c(out, n - 1, MPI_BYTE, next, 2, MPI_COMM_WORLD, &r[1]);
    MPI_Recv_c(in, n, MPI_BYTE, last, 2, MPI_COMM_WORLD, &st);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    MPI_Get_elements_c(&st, MPI_BYTE, &count);
    EQ(count, n - 1);
    memset(in, 0, n);
    MPI_Sendrecv_c(out, n, MPI_BYTE, next, 3, in, n, MPI_BYTE, last, 3, MPI_COMM_WORLD, &st);
    EQ(t_wrong(in, n, last, 1), -1);
    memcpy(in, out, n);
    MPI_Sendrecv_replace_c(in, n, MPI_BYTE, next, 4, last, 4, MPI_COMM_WORLD, &st);
    EQ(t_wrong(in, n, last, 1), -1);
    MPI_Ssend_init_c(out, n, MPI_BYTE, next, 5, MPI_COMM_WORLD, &r[0]);
    MPI_Recv_init_c(in, n, MPI_BYTE, last, 5, MPI_COMM_WORLD, &r[1]);
    for (int i = 0; i < 3; i++) {
        t_fill(out, n, t_rank, i);
        MPI_Startall(2, r);
        MPI_Waitall(2, r, sts);
        EQ(t_wrong(in, n, last, i), -1);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    MPI_Message m;
    MPI_Issend_c(out, n, MPI_BYTE, next, 6, MPI_COMM_WORLD, &r[0]);
    MPI_Mprobe(last, 6, MPI_COMM_WORLD, &m, &st);
    MPI_Mrecv_c(in, n, MPI_BYTE, &m, &st);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    OK(m == MPI_MESSAGE_NULL);
    MPI_Issend_c(out, n, MPI_BYTE, next, 7, MPI_COMM_WORLD, &r[0]);
    MPI_Mprobe(last, 7, MPI_COMM_WORLD, &m, &st);
    MPI_Imrecv_c(in, n, MPI_BYTE, &m, &r[1]);
    MPI_Waitall(2, r, sts);
    EQ(t_wrong(in, n, last, 2), -1);
    void *addr;
    MPI_Count size;
    char *buffer = malloc(100000);
    MPI_Buffer_attach_c(buffer, 100000);
    MPI_Bsend_c(out, n, MPI_BYTE, next, 8, MPI_COMM_WORLD);
    MPI_Recv_c(in, n, MPI_BYTE, last, 8, MPI_COMM_WORLD, &st);
    EQ(t_wrong(in, n, last, 2), -1);
    MPI_Buffer_detach_c(&addr, &size);
    OK(addr == buffer);
    EQ(size, 100000);
    free(buffer);
    free(out);
    free(in);
    MPI_Datatype huge;
    MPI_Type_contiguous_c((MPI_Count)1 << 33, MPI_DOUBLE, &huge);
    MPI_Type_size_c(huge, &size);
    EQ(size, (MPI_Count)1 << 36);
    MPI_Type_free(&huge);
    int one = 1, sum = 0;
    MPI_Allreduce_c(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EQ(sum, t_size);
    MPI_Bcast_c(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

#endif

static void exchange(void) {
    PART("exchange");
    enum { N = 70000 };
    static int out[N], in[N], small, got;
    int next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size, flag = 0, count;
    MPI_Request r[3];
    MPI_Status st[3];
    for (int i = 0; i < N; i++) out[i] = t_rank * 1000000 + i;
    small = t_rank * 3;
    MPI_Isendrecv(out, N, MPI_INT, next, 1, in, N, MPI_INT, last, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Isendrecv(&small, 1, MPI_INT, next, 2, &got, 1, MPI_INT, last, 2, MPI_COMM_WORLD, &r[1]);
    /* MPICH 4.0 crashes for MPI_PROC_NULL. */
    int nobody = getenv("VMPI_JOBID") ? MPI_PROC_NULL : t_rank;
    MPI_Isendrecv(&small, 1, MPI_INT, nobody, 3, &flag, 1, MPI_INT, nobody, 3, MPI_COMM_WORLD, &r[2]);
    MPI_Waitall(3, r, st);
    EQ(got, last * 3);
    int bad = 0;
    for (int i = 0; i < N; i++) bad += in[i] != last * 1000000 + i;
    EQ(bad, 0);
    /* The status is that of the receive; MPICH leaves it alone. */
    MPI_Get_count(&st[0], MPI_INT, &count);
    STRICT(count == N);
    STRICT(st[0].MPI_SOURCE == last);
    STRICT(st[0].MPI_TAG == 1);
    STRICT(st[2].MPI_SOURCE == nobody);
    OK(r[0] == MPI_REQUEST_NULL);
    MPI_Isendrecv_replace(out, N, MPI_INT, next, 4, last, 4, MPI_COMM_WORLD, &r[0]);
    for (flag = 0; !flag;) MPI_Test(&r[0], &flag, &st[0]);
    bad = 0;
    for (int i = 0; i < N; i++) bad += out[i] != last * 1000000 + i;
    EQ(bad, 0);
#ifndef OPEN_MPI
    MPI_Isendrecv_c(&small, 1, MPI_INT, next, 5, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r[0]);
    MPI_Wait(&r[0], &st[0]);
    STRICT(st[0].MPI_SOURCE == last);
    STRICT(st[0].MPI_TAG == 5);
    EQ(got, last * 3);
#endif
}

static void infos(int argc, char **argv) {
    PART("infos");
    MPI_Info info;
    MPI_Comm c;
    MPI_Request r;
    int flag, result, len;
    char value[100];
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &c, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Info_free(&info);
    MPI_Comm_compare(c, MPI_COMM_WORLD, &result);
    EQ(result, MPI_CONGRUENT);
    MPI_Comm_get_info(c, &info);
    len = sizeof value;
    MPI_Info_get_string(info, "mpi_assert_no_any_tag", &len, value, &flag);
    EQ(flag, 1);
    OK(!strcmp(value, "true"));
    EQ(len, 5);
    MPI_Info_free(&info);
    MPI_Comm_free(&c);
    MPI_Info_create_env(argc, argv, &info);
    MPI_Info_free(&info);
    OK(info == MPI_INFO_NULL);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
#ifndef OPEN_MPI
    p2p();
#endif
    exchange();
    infos(argc, argv);
    return t_end();
}
