/* A profiling tool in C, to be preloaded: what it is given of a Fortran program must look as if a C program had called. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int inits, sums, in_place, bottom, ignored, all_ignored, unweighted, named, first, ops, keys, handlers, grequests, levels, times;

int MPI_Init(int *argc, char ***argv) { return inits++, PMPI_Init(argc, argv); }
double MPI_Wtime(void) { return times++, PMPI_Wtime(); }
int MPI_Pcontrol(const int level, ...) { return levels += level, PMPI_Pcontrol(level); }

int MPI_Allreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    sums++, in_place += from == MPI_IN_PLACE;
    return PMPI_Allreduce(from, to, n, type, op, comm);
}
int MPI_Send(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    bottom += buf == MPI_BOTTOM;
    return PMPI_Send(buf, n, type, to, tag, comm);
}
int MPI_Recv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    ignored += status == MPI_STATUS_IGNORE;
    return PMPI_Recv(buf, n, type, from, tag, comm, status);
}
int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses)
{
    all_ignored += statuses == MPI_STATUSES_IGNORE;
    return PMPI_Waitall(n, requests, statuses);
}
int MPI_Waitany(int n, MPI_Request *requests, int *index, MPI_Status *status)
{
    int code = PMPI_Waitany(n, requests, index, status);
    first += *index == 0;
    return code;
}
int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int *sources, const int *weights, int out, const int *to,
                                   const int *to_weights, MPI_Info info, int reorder, MPI_Comm *made)
{
    unweighted += (weights == MPI_UNWEIGHTED) + (to_weights == MPI_UNWEIGHTED);
    return PMPI_Dist_graph_create_adjacent(comm, in, sources, weights, out, to, to_weights, info, reorder, made);
}
int MPI_Comm_set_name(MPI_Comm comm, const char *name)
{
    named += !strcmp(name, "a name");
    return PMPI_Comm_set_name(comm, name);
}
int MPI_Op_create(MPI_User_function *f, int commute, MPI_Op *op) { return ops++, PMPI_Op_create(f, commute, op); }
int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *del, int *key, void *extra)
{
    return keys++, PMPI_Comm_create_keyval(copy, del, key, extra);
}
int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function *f, MPI_Errhandler *made)
{
    return handlers++, PMPI_Comm_create_errhandler(f, made);
}
int MPI_Grequest_start(MPI_Grequest_query_function *query, MPI_Grequest_free_function *end,
                       MPI_Grequest_cancel_function *cancel, void *extra, MPI_Request *request)
{
    return grequests++, PMPI_Grequest_start(query, end, cancel, extra, request);
}

int MPI_Finalize(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("tool: init %d sums %d in place %d bottom %d ignored %d %d unweighted %d named %d first %d\n", inits, sums,
               in_place, bottom, ignored, all_ignored, unweighted, named, first);
        printf("tool: ops %d keys %d handlers %d grequests %d levels %d times %d\n", ops, keys, handlers, grequests, levels,
               times);
        fflush(stdout);
    }
    return PMPI_Finalize();
}
