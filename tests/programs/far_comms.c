/* comms.c for ranks of several nodes: it takes for granted that all share memory, which far.c looks at. */
#include <mpi.h>
static int split_together(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part) {
    (void)type, (void)info;
    return MPI_Comm_split(comm, 0, key, part);
}
#define MPI_Comm_split_type split_together
#include "comms.c"
