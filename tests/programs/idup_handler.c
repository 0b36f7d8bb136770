/* The error handler of a communicator that MPI_Comm_idup has given out may be set and asked for before it is complete. */
#include "t.h"
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    for (int i = 0; i < 200; i++) {
        MPI_Comm base, made;
        MPI_Request request;
        MPI_Errhandler handler;
        MPI_Comm_dup(MPI_COMM_WORLD, &base);
        MPI_Comm_set_errhandler(base, MPI_ERRORS_ARE_FATAL);
        MPI_Comm_idup(base, &made, &request);
        EQ(MPI_Comm_get_errhandler(made, &handler), MPI_SUCCESS);
        OK(handler == MPI_ERRORS_ARE_FATAL);
        EQ(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN), MPI_SUCCESS);
        EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
        MPI_Comm_get_errhandler(made, &handler);
        OK(handler == MPI_ERRORS_RETURN);
        int class = 0;
        MPI_Error_class(MPI_Send(NULL, 0, MPI_INT, t_size, 0, made), &class);
        EQ(class, MPI_ERR_RANK);
        MPI_Comm_free(&made);
        MPI_Comm_free(&base);
    }
    say("handlers before completion");
    return t_end();
}
