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
/* Let the next ready rank of this core run; returns when it is this rank's turn again. */
int MPIX_Yield(void);

double PMPIX_Rtime(void);
double PMPIX_Ptime(void);
int PMPIX_Start_processor_timer(void);
int PMPIX_Stop_processor_timer(void);
int PMPIX_Yield(void);

#if defined(__cplusplus)
}
#endif

#endif
