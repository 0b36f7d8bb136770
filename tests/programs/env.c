/* The environment: versions, names, times, Initialized, Finalized, thread levels, memory, attributes on SELF and WORLD at Finalize. */
#include "t.h"
static int deleted(MPI_Comm c, int key, void *value, void *extra) {
    (void)key, (void)extra;
    *(int *)value += 1;
    int up, self;
    MPI_Initialized(&up);
    MPI_Comm_size(c, &self);
    if (t_rank == 0) printf("attribute %d deleted at Finalize, of %d ranks, MPI is %s\n", *(int *)value, self, up ? "up" : "down"), fflush(stdout);
    return MPI_SUCCESS;
}
int main(int argc, char **argv) {
    int flag, version, sub, len, provided, key;
    static int value;
    MPI_Initialized(&flag);
    OK(!flag);
    MPI_Finalized(&flag);
    OK(!flag);
    MPI_Get_version(&version, &sub);
    OK(version >= 3);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    OK(provided >= MPI_THREAD_SINGLE && provided <= MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank), MPI_Comm_size(MPI_COMM_WORLD, &t_size);
    MPI_Initialized(&flag);
    EQ(flag, 1);
    MPI_Query_thread(&version);
    EQ(version, provided);
    MPI_Is_thread_main(&flag);
    EQ(flag, 1);
    char name[MPI_MAX_PROCESSOR_NAME], text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Get_processor_name(name, &len);
    OK(len > 0 && len == (int)strlen(name));
    MPI_Get_library_version(text, &len);
    OK(len > 0 && strlen(text) > 0 && len < MPI_MAX_LIBRARY_VERSION_STRING);
    STRICT(len == (int)strlen(text)); /* Open MPI 4.1.4 counts one more */
    int parts[2] = {4, -1};
#ifdef OPEN_MPI
    EQ(sscanf(text, "Open MPI v%d.%d", &parts[0], &parts[1]), 2);
#elif defined MPICH_VERSION
    EQ(sscanf(text, "MPICH Version: %d.%d", &parts[0], &parts[1]), 2);
#endif
    EQ(parts[0], 4);
    double t = MPI_Wtime();
    while (MPI_Wtime() == t) {}
    OK(MPI_Wtime() > t && MPI_Wtick() > 0 && MPI_Wtick() < 0.1);
    void *p;
    MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &p);
    memset(p, 1, 1 << 20);
    MPI_Free_mem(p);
    MPI_Pcontrol(1);
    MPI_Pcontrol(2, "more", 3);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_SELF, &rank), MPI_Comm_size(MPI_COMM_SELF, &size);
    OK(rank == 0 && size == 1);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    OK(parent == MPI_COMM_NULL);
    MPI_Fint f = MPI_Comm_c2f(MPI_COMM_WORLD);
    OK(MPI_Comm_f2c(f) == MPI_COMM_WORLD);
    OK(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE && MPI_Op_f2c(MPI_Op_c2f(MPI_MAX)) == MPI_MAX);
    MPI_Status st, back;
    MPI_Fint fst[16];
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 6, &size, 1, MPI_INT, 0, 6, MPI_COMM_SELF, &st);
    MPI_Status_c2f(&st, fst), MPI_Status_f2c(fst, &back);
    MPI_Get_count(&back, MPI_INT, &len);
    OK(back.MPI_TAG == 6 && len == 1);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &value);
    say("environment holds, %d arguments: %s", argc - 1, argc > 1 ? argv[1] : "");
    int code = t_end();
    MPI_Finalized(&flag);
    return code || !flag || value != 2;
}
