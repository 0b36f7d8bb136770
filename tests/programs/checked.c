/* Faults that vmpirun --check is to find, and their correct twins: checked good|bad CASE... [stays]. A line that ends in a case's name is where that fault is to be found. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size, bad;
static MPI_Comm world;

/* Collectives. */

static void kind(void) {
    int a[4] = {0}, b[4] = {0};
    if (bad && rank == 0)
        MPI_Bcast(a, 4, MPI_INT, 0, world); /* kind */
    else
        MPI_Allreduce(a, b, 4, MPI_INT, MPI_SUM, world); /* kind */
}

static void root(void) {
    int a[4] = {0};
    MPI_Bcast(a, 4, MPI_INT, bad ? rank % 2 : 0, world); /* root */
}

static void root_reduce(void) {
    int a[4] = {0}, b[4];
    MPI_Reduce(a, b, 4, MPI_INT, MPI_SUM, bad ? rank % 2 : 0, world); /* root_reduce */
}

static void op(void) {
    int a[4] = {0}, b[4];
    MPI_Allreduce(a, b, 4, MPI_INT, bad && rank ? MPI_MAX : MPI_SUM, world); /* op */
}

static void first(void *in, void *inout, int *n, MPI_Datatype *type) {
    (void)type;
    memcpy(inout, in, sizeof(int) * (size_t)*n);
}

static void op_own(void) {
    int a[4] = {0}, b[4];
    MPI_Op own;
    MPI_Op_create(first, 1, &own);
    MPI_Allreduce(a, b, 4, MPI_INT, bad && rank ? MPI_SUM : own, world); /* op_own */
    MPI_Op_free(&own);
}

static void count(void) {
    int a[8] = {0};
    MPI_Bcast(a, bad && rank ? 8 : 4, MPI_INT, 0, world); /* count */
}

static void count_allreduce(void) {
    int a[8] = {0}, b[8];
    MPI_Allreduce(a, b, bad && rank ? 8 : 4, MPI_INT, MPI_SUM, world); /* count_allreduce */
}

static void type(void) {
    int a[4] = {0};
    MPI_Bcast(a, 4, bad && rank ? MPI_FLOAT : MPI_INT, 0, world); /* type */
}

static void type_own(void) {
    int a[4] = {0}, *b = calloc((size_t)size, sizeof a);
    MPI_Allgather(a, 4, bad ? MPI_FLOAT : MPI_INT, b, 4, MPI_INT, world); /* type_own */
    free(b);
}

static void gather(void) {
    int a[4] = {0}, *b = calloc((size_t)size, 2 * sizeof a);
    MPI_Gather(a, 4, MPI_INT, b, bad ? 8 : 4, MPI_INT, 0, world); /* gather */
    free(b);
}

static void scatter(void) {
    int a[8] = {0}, *b = calloc((size_t)size, 2 * sizeof a);
    MPI_Scatter(b, 4, MPI_INT, a, bad && rank ? 8 : 4, MPI_INT, 0, world); /* scatter */
    free(b);
}

static void alltoall(void) {
    int *a = calloc((size_t)size, 64), *b = calloc((size_t)size, 64);
    int n = bad && rank ? 2 : 1;
    MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, world); /* alltoall */
    free(a);
    free(b);
}

static void allgatherv(void) {
    int a[8] = {0}, b[64], counts[8], displs[8];
    for (int i = 0; i < size; i++) {
        counts[i] = bad && rank == 1 && i == 0 ? 5 : 4;
        displs[i] = 8 * i;
    }
    MPI_Allgatherv(a, 4, MPI_INT, b, counts, displs, MPI_INT, world); /* allgatherv */
}

static void reduce_scatter(void) {
    int a[64] = {0}, b[64], counts[8];
    for (int i = 0; i < size; i++)
        counts[i] = 4;
    if (bad && rank == 1) {
        counts[0] = 3;
        counts[1] = 5;
    }
    MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, world); /* reduce_scatter */
}

static void scan(void) {
    int a[4] = {0}, b[4];
    MPI_Scan(a, b, 4, bad && rank ? MPI_FLOAT : MPI_INT, MPI_SUM, world); /* scan */
}

static void ibcast(void) {
    int a[4] = {0};
    MPI_Request request;
    MPI_Ibcast(a, 4, bad && rank ? MPI_FLOAT : MPI_INT, 0, world, &request); /* ibcast */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iallreduce(void) {
    int a[4] = {0}, b[4];
    MPI_Request request;
    MPI_Iallreduce(a, b, 4, MPI_INT, bad && rank ? MPI_PROD : MPI_SUM, world, &request); /* iallreduce */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void order(void) {
    int a[4] = {0}, b[4];
    MPI_Request requests[2];
    if (bad && rank) {
        MPI_Ibarrier(world, &requests[0]); /* order */
        MPI_Iallreduce(a, b, 4, MPI_INT, MPI_SUM, world, &requests[1]);
    } else {
        MPI_Iallreduce(a, b, 4, MPI_INT, MPI_SUM, world, &requests[0]); /* order */
        MPI_Ibarrier(world, &requests[1]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void comm_root(void) {
    int a = 0;
    MPI_Comm dup;
    MPI_Comm_dup(world, &dup);
    MPI_Bcast(&a, 1, MPI_INT, bad ? rank % 2 : 0, dup); /* comm_root */
    MPI_Comm_free(&dup);
}

/* Calls with a wrong root at one rank, which are refused there: others never see them. No fault, but for its error. */
static void refused(void) {
    int a[4] = {0}, b[64] = {0};
    MPI_Request request;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    if (rank == 0) {
        MPI_Scatter(b, 4, MPI_INT, a, 4, MPI_INT, size, world);
        MPI_Iscatter(b, 4, MPI_INT, a, 4, MPI_INT, size, world, &request);
    }
    MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
    MPI_Bcast(a, 4, MPI_INT, 0, world);
    MPI_Ibcast(a, 4, MPI_INT, 0, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Messages. */

static void message_type(void) {
    char a[64] = {0};
    if (rank == 0)
        MPI_Send(a, 4, MPI_INT, 1, 7, world);
    if (rank == 1)
        MPI_Recv(a, 4, bad ? MPI_FLOAT : MPI_INT, 0, 7, world, MPI_STATUS_IGNORE); /* message_type */
}

static void message_struct(void) {
    char a[64] = {0};
    int lengths[2] = {1, 1};
    MPI_Aint at[2] = {0, 8};
    MPI_Datatype both[2] = {MPI_INT, MPI_DOUBLE}, other[2] = {MPI_DOUBLE, MPI_INT}, type;
    MPI_Type_create_struct(2, lengths, at, bad && rank ? other : both, &type);
    MPI_Type_commit(&type);
    if (rank == 0)
        MPI_Send(a, 2, type, 1, 8, world);
    if (rank == 1)
        MPI_Recv(a, 2, type, 0, 8, world, MPI_STATUS_IGNORE); /* message_struct */
    MPI_Type_free(&type);
}

static void message_bytes(void) {
    /* A part of what the receive has room for, as bytes: right. The bad one has two integers for one number. */
    double a[8] = {0};
    if (rank == 0)
        MPI_Send(a, bad ? 2 : 16, bad ? MPI_INT : MPI_BYTE, 1, 9, world);
    if (rank == 1)
        MPI_Recv(a, 8, MPI_DOUBLE, 0, 9, world, MPI_STATUS_IGNORE); /* message_bytes */
}

static void message_nonblocking(void) {
    long a[4] = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Isend(a, 4, MPI_LONG, 1, 10, world, &request);
    if (rank == 1)
        MPI_Irecv(a, 4, bad ? MPI_DOUBLE : MPI_LONG_LONG, MPI_ANY_SOURCE, 10, world, &request); /* message_nonblocking */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void message_large(void) {
    long *a = calloc(1 << 17, sizeof *a);
    if (rank == 0)
        MPI_Send(a, 1 << 17, MPI_LONG, 1, 11, world);
    if (rank == 1)
        MPI_Recv(a, 1 << 17, bad ? MPI_DOUBLE : MPI_LONG, 0, MPI_ANY_TAG, world, MPI_STATUS_IGNORE); /* message_large */
    free(a);
}

static void sendrecv(void) {
    int a[4] = {0}, b[4];
    int other = rank ^ 1;
    if (other < size)
        MPI_Sendrecv(a, 4, MPI_INT, other, 12, b, 4, bad ? MPI_FLOAT : MPI_INT, other, 12, world, MPI_STATUS_IGNORE); /* sendrecv */
}

static void mprobe(void) {
    int a[4] = {0};
    MPI_Message message;
    if (rank == 0)
        MPI_Send(a, 4, MPI_INT, 1, 13, world);
    if (rank == 1) {
        MPI_Mprobe(0, 13, world, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(a, 4, bad ? MPI_FLOAT : MPI_INT, &message, MPI_STATUS_IGNORE); /* mprobe */
    }
}

static void persistent(void) {
    int a[4] = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Send_init(a, 4, MPI_INT, 1, 14, world, &request);
    if (rank == 1)
        MPI_Recv_init(a, 4, bad ? MPI_FLOAT : MPI_INT, 0, 14, world, &request);
    if (rank < 2) {
        for (int i = 0; i < 2; i++) {
            MPI_Start(&request); /* persistent */
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
    }
}

static void truncation(void) {
    int a[8] = {0};
    if (rank == 0)
        MPI_Send(a, 8, MPI_INT, 1, 15, world);
    if (rank == 1)
        MPI_Recv(a, bad ? 4 : 8, MPI_INT, 0, 15, world, MPI_STATUS_IGNORE); /* truncation */
}

static void overlap_receives(void) {
    int a[8] = {0};
    MPI_Request requests[2];
    if (rank == 1) {
        MPI_Irecv(a, 4, MPI_INT, 0, 16, world, &requests[0]);
        MPI_Irecv(a + (bad ? 3 : 4), 4, MPI_INT, 0, 17, world, &requests[1]); /* overlap_receives */
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    if (rank == 0) {
        MPI_Send(a, 4, MPI_INT, 1, 16, world);
        MPI_Send(a, 4, MPI_INT, 1, 17, world);
    }
}

static void overlap_send(void) {
    int a[8] = {0};
    MPI_Request requests[2];
    int other = rank ^ 1;
    if (other < size) {
        MPI_Irecv(a, 4, MPI_INT, other, 18, world, &requests[0]);
        MPI_Isend(a + (bad ? 2 : 4), 4, MPI_INT, other, 18, world, &requests[1]); /* overlap_send */
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

static void overlap_columns(void) {
    /* Columns of a matrix: their spans overlap, their bytes do not. */
    int a[4][4] = {{0}};
    MPI_Datatype column;
    MPI_Request requests[2];
    MPI_Type_vector(4, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    if (rank == 1) {
        MPI_Irecv(&a[0][0], 1, column, 0, 19, world, &requests[0]);
        MPI_Irecv(&a[0][bad ? 0 : 1], 1, column, 0, 20, world, &requests[1]); /* overlap_columns */
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    if (rank == 0) {
        MPI_Send(a, 4, MPI_INT, 1, 19, world);
        MPI_Send(a, 4, MPI_INT, 1, 20, world);
    }
    MPI_Type_free(&column);
}

static void changed(void) {
    int a[4] = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        MPI_Isend(a, 4, MPI_INT, 1, 21, world, &request); /* changed */
        if (bad)
            a[2] = 1;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        a[2] = 2;
    }
    if (rank == 1)
        MPI_Recv(a, 4, MPI_INT, 0, 21, world, MPI_STATUS_IGNORE);
}

static void changed_large(void) {
    int n = 1 << 18, *a = calloc((size_t)n, sizeof *a);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        MPI_Issend(a, n, MPI_INT, 1, 22, world, &request); /* changed_large */
        if (bad)
            a[n - 1] = 1;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank == 1)
        MPI_Recv(a, n, MPI_INT, 0, 22, world, MPI_STATUS_IGNORE);
    free(a);
}

static void tag(void) {
    int a = 0, flag, *most;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &flag);
    int tag = bad ? *most + 1 : *most;
    if (rank == 0)
        MPI_Send(&a, 1, MPI_INT, 1, tag, world); /* tag */
    if (rank == 1)
        MPI_Recv(&a, 1, MPI_INT, 0, tag, world, MPI_STATUS_IGNORE);
}

/* What is left at the end. */

static void isend(void) {
    static int a[4];
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Isend(a, 4, MPI_INT, 1, 23, world, &request); /* isend */
    if (rank == 1)
        MPI_Recv(a, 4, MPI_INT, 0, 23, world, MPI_STATUS_IGNORE);
    if (!bad)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void irecv(void) {
    static int a[4];
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 1)
        MPI_Irecv(a, 4, MPI_INT, 0, 24, world, &request); /* irecv */
    if (!bad) {
        if (rank == 0)
            MPI_Send(a, 4, MPI_INT, 1, 24, world);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void cancelled(void) {
    /* What is cancelled is to be completed, too. */
    static int a[4];
    MPI_Request request;
    MPI_Irecv(a, 4, MPI_INT, rank, 25, world, &request); /* cancelled */
    MPI_Cancel(&request);
    if (!bad)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ibarrier(void) {
    MPI_Request request;
    MPI_Ibarrier(world, &request); /* ibarrier */
    if (!bad)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void started(void) {
    static int a[4];
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Send_init(a, 4, MPI_INT, 1, 26, world, &request);
    if (rank == 1)
        MPI_Recv_init(a, 4, MPI_INT, 0, 26, world, &request);
    if (rank < 2) {
        MPI_Start(&request); /* started */
        if (!bad) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Request_free(&request);
        }
    }
}

static void freed_request(void) {
    /* A send whose request is freed and that arrives: right. */
    static int a[4];
    MPI_Request request;
    if (rank == 0) {
        MPI_Isend(a, 4, MPI_INT, 1, 27, world, &request); /* freed_request */
        if (!bad)
            MPI_Request_free(&request);
    }
    if (rank == 1)
        MPI_Recv(a, 4, MPI_INT, 0, 27, world, MPI_STATUS_IGNORE);
}

static void lost(void) {
    int a[3] = {0};
    if (rank == 0)
        MPI_Send(a, 3, MPI_INT, 1, 28, world);
    if (rank == 1 && !bad)
        MPI_Recv(a, 3, MPI_INT, 0, 28, world, MPI_STATUS_IGNORE);
}

static void lost_elsewhere(void) {
    int a[5] = {0};
    MPI_Comm kept;
    MPI_Comm_dup(world, &kept); /* kept */
    MPI_Comm_set_name(kept, "elsewhere");
    if (rank == 1)
        MPI_Send(a, 5, MPI_INT, 0, 29, kept);
    if (rank == 0 && !bad)
        MPI_Recv(a, 5, MPI_INT, 1, 29, kept, MPI_STATUS_IGNORE);
    if (!bad)
        MPI_Comm_free(&kept);
}

static void window(void) {
    static int a[4];
    MPI_Win win;
    MPI_Win_create(a, sizeof a, 1, MPI_INFO_NULL, world, &win); /* window */
    MPI_Win_fence(0, win);
    if (!bad)
        MPI_Win_free(&win);
}

static void file(void) {
    MPI_File handle;
    MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &handle); /* file */
    if (!bad)
        MPI_File_close(&handle);
}

/* Notes. */

static void comm(void) {
    MPI_Comm half;
    MPI_Comm_split(world, rank % 2, rank, &half); /* comm */
    if (!bad)
        MPI_Comm_free(&half);
}

static void datatype(void) {
    MPI_Datatype type;
    MPI_Type_contiguous(3, MPI_INT, &type); /* datatype */
    MPI_Type_commit(&type);
    if (!bad)
        MPI_Type_free(&type);
}

static void group(void) {
    MPI_Group all;
    MPI_Comm_group(world, &all); /* group */
    if (!bad)
        MPI_Group_free(&all);
}

static void info(void) {
    MPI_Info info;
    MPI_Info_create(&info); /* info */
    if (!bad)
        MPI_Info_free(&info);
}

static void operation(void) {
    MPI_Op own;
    MPI_Op_create(first, 0, &own); /* operation */
    if (!bad)
        MPI_Op_free(&own);
}

static void keyval(void) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL); /* keyval */
    if (!bad)
        MPI_Comm_free_keyval(&key);
}

static void complain(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
}

static void errhandler(void) {
    MPI_Errhandler handler;
    MPI_Comm dup;
    MPI_Comm_dup(world, &dup);
    MPI_Comm_create_errhandler(complain, &handler); /* errhandler */
    MPI_Comm_set_errhandler(dup, handler);
    if (!bad)
        MPI_Errhandler_free(&handler);
    MPI_Comm_free(&dup);
}

static void inactive(void) {
    static int a[4];
    MPI_Request request;
    MPI_Send_init(a, 4, MPI_INT, rank, 30, world, &request);
    if (!bad)
        MPI_Request_free(&request);
}

static void buffer(void) {
    static char space[4096];
    void *given;
    int bytes;
    MPI_Buffer_attach(space, sizeof space);
    if (!bad)
        MPI_Buffer_detach(&given, &bytes);
}

#define CASE(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    CASE(kind), CASE(root), CASE(root_reduce), CASE(op), CASE(op_own), CASE(count), CASE(count_allreduce), CASE(type),
    CASE(type_own), CASE(gather), CASE(scatter), CASE(alltoall), CASE(allgatherv), CASE(reduce_scatter), CASE(scan),
    CASE(ibcast), CASE(iallreduce), CASE(order), CASE(comm_root), CASE(refused), CASE(message_type), CASE(message_struct),
    CASE(message_bytes), CASE(message_nonblocking), CASE(message_large), CASE(sendrecv), CASE(mprobe), CASE(persistent),
    CASE(truncation), CASE(overlap_receives), CASE(overlap_send), CASE(overlap_columns), CASE(changed),
    CASE(changed_large), CASE(tag), CASE(isend), CASE(irecv), CASE(cancelled), CASE(ibarrier), CASE(started),
    CASE(freed_request), CASE(lost), CASE(lost_elsewhere), CASE(window), CASE(file), CASE(comm), CASE(datatype),
    CASE(group), CASE(info), CASE(operation), CASE(keyval), CASE(errhandler), CASE(inactive), CASE(buffer),
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    world = MPI_COMM_WORLD;
    bad = argc > 1 && strcmp(argv[1], "bad") == 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int wanted = argc == 2;
        for (int arg = 2; arg < argc; arg++)
            wanted |= strcmp(argv[arg], cases[i].name) == 0;
        if (wanted)
            cases[i].run();
    }
    if (strcmp(argv[argc - 1], "stays") == 0) {
        /* Until somebody makes this file. */
        FILE *go;
        while (!(go = fopen("go", "r")))
            nanosleep(&(struct timespec){0, 5000000}, NULL);
        fclose(go);
    }
    MPI_Finalize();
    return 0;
}
