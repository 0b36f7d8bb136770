/* A session outlives MPI_Finalize. "good": what was made of it is freed before the session ends; "bad": one communicator is not. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm, left;
  int one = 1, sum;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Init(&argc, &argv);
  MPI_Finalize();
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (strcmp(argv[1], "bad") == 0) MPI_Comm_dup(comm, &left);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  return sum < 1;
}
