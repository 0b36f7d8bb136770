/* A library to be preloaded: counts the messages that a program sends, by PMPI, and prints them in MPI_Finalize as
   `pmpi FROM TO MESSAGES BYTES`. It knows nothing of the MPI library below it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long long *messages, *bytes;
static int rank, size;

static void prepare(void) {
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    messages = calloc(size, sizeof *messages);
    bytes = calloc(size, sizeof *bytes);
}

static void count(int n, MPI_Datatype type, int to, MPI_Comm comm) {
    MPI_Group here, world;
    int type_size, in_world, inter;
    if (to == MPI_PROC_NULL) return;
    PMPI_Comm_test_inter(comm, &inter);
    if (inter) PMPI_Comm_remote_group(comm, &here);
    else PMPI_Comm_group(comm, &here);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(here, 1, &to, world, &in_world);
    PMPI_Group_free(&here);
    PMPI_Group_free(&world);
    PMPI_Type_size(type, &type_size);
    if (in_world == MPI_UNDEFINED) return;
    messages[in_world]++;
    bytes[in_world] += (unsigned long long)n * type_size;
}

int MPI_Init(int *argc, char ***argv) {
    int code = PMPI_Init(argc, argv);
    prepare();
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int code = PMPI_Init_thread(argc, argv, required, provided);
    prepare();
    return code;
}

int MPI_Finalize(void) {
    for (int to = 0; to < size; to++)
        if (messages[to]) fprintf(stderr, "pmpi %d %d %llu %llu\n", rank, to, messages[to], bytes[to]);
    return PMPI_Finalize();
}

#define SEND(NAME)                                                                                                     \
    int MPI_##NAME(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {                        \
        count(n, type, to, comm);                                                                                      \
        return PMPI_##NAME(buf, n, type, to, tag, comm);                                                               \
    }
#define ISEND(NAME)                                                                                                    \
    int MPI_##NAME(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {  \
        count(n, type, to, comm);                                                                                      \
        return PMPI_##NAME(buf, n, type, to, tag, comm, request);                                                      \
    }
SEND(Send) SEND(Ssend) SEND(Rsend) SEND(Bsend)
ISEND(Isend) ISEND(Issend) ISEND(Irsend) ISEND(Ibsend)

int MPI_Sendrecv(const void *sbuf, int sn, MPI_Datatype stype, int to, int stag, void *rbuf, int rn, MPI_Datatype rtype,
                 int from, int rtag, MPI_Comm comm, MPI_Status *status) {
    count(sn, stype, to, comm);
    return PMPI_Sendrecv(sbuf, sn, stype, to, stag, rbuf, rn, rtype, from, rtag, comm, status);
}

int MPI_Sendrecv_replace(void *buf, int n, MPI_Datatype type, int to, int stag, int from, int rtag, MPI_Comm comm,
                         MPI_Status *status) {
    count(n, type, to, comm);
    return PMPI_Sendrecv_replace(buf, n, type, to, stag, from, rtag, comm, status);
}
