/* Prints the control variable vmpi_overlap, as a number and as its name. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  int given, count, value = -1;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &given);
  MPI_Init(&argc, &argv);
  MPI_T_cvar_get_num(&count);
  for (int i = 0; i < count; i++) {
    char name[256], item[256] = "";
    int length = sizeof name, verbosity, bind, scope, items;
    MPI_Datatype type;
    MPI_T_enum enumeration;
    MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &enumeration, NULL, NULL, &bind, &scope);
    if (strcmp(name, "vmpi_overlap") != 0) continue;
    MPI_T_cvar_handle handle;
    MPI_T_cvar_handle_alloc(i, NULL, &handle, &count);
    MPI_T_cvar_read(handle, &value);
    MPI_T_cvar_handle_free(&handle);
    length = sizeof name;
    MPI_T_enum_get_info(enumeration, &items, name, &length);
    for (int k = 0; k < items; k++) {
      int number;
      length = sizeof item;
      MPI_T_enum_get_item(enumeration, k, &number, item, &length);
      if (number == value) break;
    }
    printf("%d %s\n", value, item);
    break;
  }
  MPI_Finalize();
  MPI_T_finalize();
  return 0;
}
