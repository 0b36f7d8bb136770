/* Functions that are newer than an installed header, as weak symbols: the program then links with that MPI, and runs
 * under one that has them. Types and values are those of the libraries that have them (Open MPI 5, MPICH 5). */
#ifndef NEWER_H
#define NEWER_H
#include <mpi.h>
#define NEWER extern __attribute__((weak))
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
typedef struct ompi_instance_t *MPI_Session;
typedef void(MPI_Session_errhandler_function)(MPI_Session *, int *, ...);
NEWER char ompi_mpi_instance_null[];
#define MPI_SESSION_NULL ((MPI_Session)(void *)ompi_mpi_instance_null)
#define MPI_ERR_SESSION 78
#define MPI_COMM_TYPE_HW_UNGUIDED 12
#define MPI_COMM_TYPE_HW_GUIDED 13
NEWER int MPI_Session_init(MPI_Info, MPI_Errhandler, MPI_Session *);
NEWER int MPI_Session_finalize(MPI_Session *);
NEWER int MPI_Session_get_info(MPI_Session, MPI_Info *);
NEWER int MPI_Session_get_num_psets(MPI_Session, MPI_Info, int *);
NEWER int MPI_Session_get_nth_pset(MPI_Session, MPI_Info, int, int *, char *);
NEWER int MPI_Session_get_pset_info(MPI_Session, const char *, MPI_Info *);
NEWER int MPI_Session_create_errhandler(MPI_Session_errhandler_function *, MPI_Errhandler *);
NEWER int MPI_Session_set_errhandler(MPI_Session, MPI_Errhandler);
NEWER int MPI_Session_get_errhandler(MPI_Session, MPI_Errhandler *);
NEWER int MPI_Session_call_errhandler(MPI_Session, int);
NEWER int MPI_Group_from_session_pset(MPI_Session, const char *, MPI_Group *);
NEWER int MPI_Comm_create_from_group(MPI_Group, const char *, MPI_Info, MPI_Errhandler, MPI_Comm *);
NEWER int MPI_Intercomm_create_from_groups(MPI_Group, int, MPI_Group, int, const char *, MPI_Info, MPI_Errhandler, MPI_Comm *);
NEWER int MPI_Isendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
NEWER int MPI_Isendrecv_replace(void *, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request *);
NEWER int MPI_Psend_init(const void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
NEWER int MPI_Precv_init(void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
NEWER int MPI_Pready(int, MPI_Request);
NEWER int MPI_Pready_range(int, int, MPI_Request);
NEWER int MPI_Pready_list(int, const int[], MPI_Request);
NEWER int MPI_Parrived(MPI_Request, int, int *);
NEWER int MPI_Comm_idup_with_info(MPI_Comm, MPI_Info, MPI_Comm *, MPI_Request *);
NEWER int MPI_Info_create_env(int, char **, MPI_Info *);
NEWER int MPI_Info_get_string(MPI_Info, const char *, int *, char *, int *);
#endif
#if MPI_VERSION < 4 || (MPI_VERSION == 4 && MPI_SUBVERSION < 1)
#ifndef OPEN_MPI
#define MPI_BUFFER_AUTOMATIC (void *)-2
#define MPI_COMM_TYPE_RESOURCE_GUIDED 4
NEWER int MPI_Status_set_elements_c(MPI_Status *, MPI_Datatype, MPI_Count);
#endif
NEWER int MPI_Buffer_flush(void);
NEWER int MPI_Buffer_iflush(MPI_Request *);
NEWER int MPI_Comm_attach_buffer(MPI_Comm, void *, int);
NEWER int MPI_Comm_detach_buffer(MPI_Comm, void *, int *);
NEWER int MPI_Comm_flush_buffer(MPI_Comm);
NEWER int MPI_Comm_iflush_buffer(MPI_Comm, MPI_Request *);
NEWER int MPI_Session_attach_buffer(MPI_Session, void *, int);
NEWER int MPI_Session_detach_buffer(MPI_Session, void *, int *);
NEWER int MPI_Session_flush_buffer(MPI_Session);
NEWER int MPI_Get_hw_resource_info(MPI_Info *);
NEWER int MPI_Remove_error_class(int);
NEWER int MPI_Remove_error_code(int);
NEWER int MPI_Remove_error_string(int);
NEWER int MPI_Request_get_status_any(int, const MPI_Request[], int *, int *, MPI_Status *);
NEWER int MPI_Request_get_status_all(int, const MPI_Request[], int *, MPI_Status *);
NEWER int MPI_Request_get_status_some(int, const MPI_Request[], int *, int *, MPI_Status *);
NEWER int MPI_Type_get_value_index(MPI_Datatype, MPI_Datatype, MPI_Datatype *);
#endif
#endif
