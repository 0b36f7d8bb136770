/* What the programs of fault tolerance share: the names that not every real library's header has. */
#ifndef ULFM_H
#define ULFM_H
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if !defined(OPEN_MPI) && !defined(MPICH_NUMVERSION)
#include <vmpi.h>
#endif
#ifdef OPEN_MPI
/* Open MPI 5's; weak, so that a program links with Open MPI 4. */
#undef MPIX_ERR_PROC_FAILED
#undef MPIX_ERR_PROC_FAILED_PENDING
#undef MPIX_ERR_REVOKED
#define MPIX_ERR_PROC_FAILED 75
#define MPIX_ERR_PROC_FAILED_PENDING 76
#define MPIX_ERR_REVOKED 77
#endif
#pragma weak MPIX_Comm_revoke
#pragma weak MPIX_Comm_is_revoked
#pragma weak MPIX_Comm_agree
#pragma weak MPIX_Comm_iagree
#pragma weak MPIX_Comm_shrink
#pragma weak MPIX_Comm_failure_ack
#pragma weak MPIX_Comm_failure_get_acked
#pragma weak MPIX_Comm_get_failed
#pragma weak MPIX_Comm_ack_failed
int MPIX_Comm_revoke(MPI_Comm comm);
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int MPIX_Comm_agree(MPI_Comm comm, int *flag);
int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int MPIX_Comm_failure_ack(MPI_Comm comm);
int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int MPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);

static int class_of(int code)
{
    int class = code;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

static const char *name_of(int code)
{
    static char another[MPI_MAX_ERROR_STRING + 32];
    int class = class_of(code), length = snprintf(another, sizeof another, "class %d: ", class), rest;
    MPI_Error_string(code, another + length, &rest);
    return class == MPI_SUCCESS                    ? "SUCCESS"
           : class == MPIX_ERR_PROC_FAILED         ? "PROC_FAILED"
           : class == MPIX_ERR_PROC_FAILED_PENDING ? "PROC_FAILED_PENDING"
           : class == MPIX_ERR_REVOKED             ? "REVOKED"
           : class == MPI_ERR_IN_STATUS            ? "IN_STATUS"
           : class == MPI_ERR_PENDING              ? "PENDING"
                                                   : another;
}

#define CHECK(condition)                                                                                             \
    do {                                                                                                             \
        if (!(condition)) {                                                                                          \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                                  \
            fflush(stderr);                                                                                          \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                                            \
        }                                                                                                            \
    } while (0)

/* The code must be of this class. */
#define EXPECT(code, class)                                                                                          \
    do {                                                                                                             \
        int got_ = (code);                                                                                           \
        if (class_of(got_) != (class)) {                                                                             \
            fprintf(stderr, "%s:%d: %s gave %s, not %s\n", __FILE__, __LINE__, #code, name_of(got_), #class);        \
            fflush(stderr);                                                                                          \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                                            \
        }                                                                                                            \
    } while (0)

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}
#endif
