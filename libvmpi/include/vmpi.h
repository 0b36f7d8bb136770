/* What vmpi offers beyond MPI. A program that uses it needs vmpi's library; the rest of its MPI stays the standard's. */
#ifndef VMPI_H
#define VMPI_H

#include <mpi.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* Seconds that this rank itself has run since MPI_Init (process-POV clock), without the time in which others had its core. */
double MPIX_Rtime(void);
/* Seconds on the core-POV clock of this rank's core, as long as it was started. */
double MPIX_Ptime(void);
int MPIX_Start_processor_timer(void);
int MPIX_Stop_processor_timer(void);
/* Performance counters that `vmpirun --counters LIST` counts, by their names there ("page-faults", "instructions", ...): what this rank itself has counted
   since MPI_Init (process-POV), and what the ranks of its core have counted between MPIX_Start_processor_timer and MPIX_Stop_processor_timer (core-POV).
   MPI_ERR_ARG: it is not counted. */
int MPIX_Rcounter(const char *event, long long *count);
int MPIX_Pcounter(const char *event, long long *count);
/* Let the next ready rank of this core run; returns when it is this rank's turn again. */
int MPIX_Yield(void);
/* In a simulated job (`vmpirun --simulate`), compute for so many seconds of virtual time, which takes no real time: for skeletons of programs. Elsewhere
   MPI_ERR_UNSUPPORTED_OPERATION. */
int MPIX_Compute(double seconds);
/* A part of the program that it names itself begins, and ends: `vmpirun --report` says how long ranks were in each, --trace and --report-html show when. They
   may nest, overlap, and begin again while they are open; of long names the first 79 bytes are kept, and of more than 127 the others are told together. They
   work at any time, and cost the test of a flag where nobody asks. A program that shall run with other MPIs, too, finds them if they are there:
       int MPIX_Region_begin(const char *) __attribute__((weak));
       if (MPIX_Region_begin) MPIX_Region_begin("solve");
   (or by dlsym(RTLD_DEFAULT, "MPIX_Region_begin")). In Fortran: CALL MPIX_REGION_BEGIN('solve', ierror).
   MPI_Pcontrol does the same without them: MPI_Pcontrol(5) and up begins the region of that number, MPI_Pcontrol(-5) ends it, 0 stops recording and 1 lets it
   go on; with `vmpirun --pcontrol regions` MPI_Pcontrol(1, "solve") and MPI_Pcontrol(-1, "solve") are begin and end, as with IPM. */
int MPIX_Region_begin(const char *name);
int MPIX_Region_end(const char *name);

double PMPIX_Rtime(void);
double PMPIX_Ptime(void);
int PMPIX_Start_processor_timer(void);
int PMPIX_Stop_processor_timer(void);
int PMPIX_Rcounter(const char *event, long long *count);
int PMPIX_Pcounter(const char *event, long long *count);
int PMPIX_Yield(void);
int PMPIX_Compute(double seconds);
int PMPIX_Region_begin(const char *name);
int PMPIX_Region_end(const char *name);

/* Fault tolerance (ULFM): what these mean, Open MPI 5 and MPICH document. `vmpirun --enable-recovery` starts jobs that survive deaths. */
#define MPIX_ERR_PROC_FAILED 0x3f01
#define MPIX_ERR_PROC_FAILED_PENDING 0x3f02
#define MPIX_ERR_REVOKED 0x3f03

int MPIX_Comm_revoke(MPI_Comm comm);
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int MPIX_Comm_agree(MPI_Comm comm, int *flag);
int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int MPIX_Comm_failure_ack(MPI_Comm comm);
int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int MPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);

int PMPIX_Comm_revoke(MPI_Comm comm);
int PMPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int PMPIX_Comm_agree(MPI_Comm comm, int *flag);
int PMPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int PMPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int PMPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int PMPIX_Comm_failure_ack(MPI_Comm comm);
int PMPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);
int PMPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int PMPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);

#if defined(__cplusplus)
}
#endif

#endif
