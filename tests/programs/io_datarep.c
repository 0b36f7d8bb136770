/* Data representations: external32 is big-endian whatever the view; registered ones convert with the program's functions
 * (neither Open MPI nor MPICH has those: only vmpi is asked). */
#include "t.h"
#include <unistd.h>
#define OURS (getenv("VMPI_JOBID") != NULL)
#define NUL MPI_INFO_NULL
static MPI_Status st;
static int calls, wrongs;
/* In the file an int is eight bytes: its value as text. */
static int read_fn(void *user, MPI_Datatype t, int n, void *file, MPI_Offset position, void *extra) {
    int *to = (int *)user + position;
    calls++;
    wrongs += t != MPI_INT || extra != &calls;
    for (int i = 0; i < n; i++) to[i] = strtol((char[9]){0}, 0, 10), sscanf((char *)file + 8 * i, "%8d", &to[i]);
    return MPI_SUCCESS;
}
static int write_fn(void *user, MPI_Datatype t, int n, void *file, MPI_Offset position, void *extra) {
    int *from = (int *)user + position;
    char cell[16];
    calls++;
    wrongs += t != MPI_INT || extra != &calls;
    for (int i = 0; i < n; i++) {
        if (from[i] == 666) return MPI_ERR_CONVERSION;
        sprintf(cell, "%08d", from[i]);
        memcpy((char *)file + 8 * i, cell, 8);
    }
    return MPI_SUCCESS;
}
static int extent_fn(MPI_Datatype t, MPI_Aint *extent, void *extra) {
    int size;
    wrongs += extra != &calls;
    MPI_Type_size(t, &size);
    *extent = t == MPI_INT ? 8 : size;
    return MPI_SUCCESS;
}
static unsigned char raw[4096];
static long slurp(const char *name) {
    FILE *f = fopen(name, "rb");
    long n = f ? fread(raw, 1, sizeof raw, f) : -1;
    if (f) fclose(f);
    return n;
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_File f;
    int n;
    PART("external32");
    if (t_rank == 0) unlink("io_datarep.a");
    MPI_Barrier(MPI_COMM_WORLD);
    EQ(MPI_File_open(MPI_COMM_WORLD, "io_datarep.a", MPI_MODE_RDWR | MPI_MODE_CREATE, NUL, &f), 0);
    if (OURS) {
        int ints[6], back[6];
        double d = 1.5 + t_rank, e = 0;
        for (int i = 0; i < 6; i++) ints[i] = 0x01020300 * (i + 1) + t_rank;
        MPI_Datatype t, r;
        MPI_Type_contiguous(2, MPI_INT, &t);
        MPI_Type_create_resized(t, 0, 8 * t_size, &r);
        MPI_Type_commit(&r);
        EQ(MPI_File_set_view(f, 8 * t_rank, MPI_INT, r, "external32", NUL), 0);
        EQ(MPI_File_write_all(f, ints, 6, MPI_INT, &st), 0);
        MPI_Get_count(&st, MPI_INT, &n);
        EQ(n, 6);
        EQ(MPI_File_read_at_all(f, 0, back, 6, MPI_INT, &st), 0);
        EQ(memcmp(ints, back, sizeof ints), 0);
        MPI_Get_count(&st, MPI_INT, &n);
        EQ(n, 6);
        MPI_Barrier(MPI_COMM_WORLD);
        EQ(slurp("io_datarep.a"), 24 * t_size);
        for (int i = 0; i < 6; i++)
            for (int k = 0; k < 4; k++)
                EQ(raw[8 * t_rank + (i / 2) * 8 * t_size + i % 2 * 4 + k], (ints[i] >> (24 - 8 * k)) & 255);
        char rep[MPI_MAX_DATAREP_STRING];
        MPI_Offset o;
        MPI_Datatype et, ft;
        MPI_File_get_view(f, &o, &et, &ft, rep);
        OK(!strcmp(rep, "external32"));
        MPI_Type_free(&ft);
        EQ(MPI_File_set_view(f, 1000, MPI_DOUBLE, MPI_DOUBLE, "external32", NUL), 0);
        EQ(MPI_File_write_at(f, t_rank, &d, 1, MPI_DOUBLE, &st), 0);
        EQ(MPI_File_read_at(f, t_rank, &e, 1, MPI_DOUBLE, &st), 0);
        OK(d == e);
        /* A C long has four bytes there. */
        long longs[2] = {-t_rank - 1, 40000 + t_rank}, again[2] = {0};
        MPI_Aint four;
        EQ(MPI_File_set_view(f, 1000, MPI_LONG, MPI_LONG, "external32", NUL), 0);
        EQ(MPI_File_get_type_extent(f, MPI_LONG, &four), 0);
        EQ(four, 4);
        EQ(MPI_File_write_at_all(f, 2 * t_rank, longs, 2, MPI_LONG, &st), 0);
        MPI_Get_count(&st, MPI_LONG, &n);
        EQ(n, 2);
        EQ(MPI_File_read_at_all(f, 2 * t_rank, again, 2, MPI_LONG, &st), 0);
        EQ(memcmp(longs, again, sizeof longs), 0);
        MPI_Barrier(MPI_COMM_WORLD);
        EQ(slurp("io_datarep.a"), 1000 + 8 * t_size);
        EQ(raw[1000 + 8 * t_rank + 3], 255 & longs[0]);
        EQ(raw[1000 + 8 * t_rank + 7], 255 & longs[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        EQ(MPI_File_set_view(f, 1000, MPI_DOUBLE, MPI_DOUBLE, "external32", NUL), 0);
        EQ(MPI_File_write_at(f, t_rank, &d, 1, MPI_DOUBLE, &st), 0);
        /* A part of an element at the end of the file is no element. */
        MPI_Barrier(MPI_COMM_WORLD);
        EQ(MPI_File_set_size(f, 1000 + 8 * t_size - 3), 0);
        e = 77;
        EQ(MPI_File_read_at(f, t_size - 1, &e, 1, MPI_DOUBLE, &st), 0);
        MPI_Get_count(&st, MPI_DOUBLE, &n);
        EQ(n, 0);
        OK(e == 77);
        MPI_Type_free(&t), MPI_Type_free(&r);
    }
    EQ(MPI_File_close(&f), 0);

    PART("registered");
    if (OURS) {
        EQ(MPI_Register_datarep("text", read_fn, write_fn, extent_fn, &calls), 0);
        if (t_rank == 0) unlink("io_datarep.b");
        MPI_Barrier(MPI_COMM_WORLD);
        EQ(MPI_File_open(MPI_COMM_WORLD, "io_datarep.b", MPI_MODE_RDWR | MPI_MODE_CREATE, NUL, &f), 0);
        MPI_Datatype t;
        MPI_Aint extent;
        MPI_Type_vector(3, 1, t_size, MPI_INT, &t);
        MPI_Type_commit(&t);
        EQ(MPI_File_set_view(f, 8 * t_rank, MPI_INT, t, "text", NUL), 0);
        EQ(MPI_File_get_type_extent(f, MPI_INT, &extent), 0);
        EQ(extent, 8);
        EQ(MPI_File_get_type_extent(f, t, &extent), 0);
        EQ(extent, 8 * (2 * t_size + 1));
        int ints[3] = {100 + t_rank, -7, 12345}, back[3] = {0};
        EQ(MPI_File_write_all(f, ints, 3, MPI_INT, &st), 0);
        MPI_Get_count(&st, MPI_INT, &n);
        EQ(n, 3);
        EQ(MPI_File_sync(f), 0);
        EQ(MPI_File_read_at(f, 0, back, 3, MPI_INT, &st), 0);
        MPI_Get_count(&st, MPI_INT, &n);
        EQ(n, 3);
        EQ(memcmp(ints, back, sizeof ints), 0);
        EQ(slurp("io_datarep.b"), 24 * t_size);
        char cell[9];
        sprintf(cell, "%08d", 100 + t_rank);
        EQ(memcmp(raw + 8 * t_rank, cell, 8), 0);
        ints[0] = 666;
        int class;
        MPI_Error_class(MPI_File_write_at(f, 0, ints, 1, MPI_INT, &st), &class);
        EQ(class, MPI_ERR_CONVERSION);
        EQ(wrongs, 0);
        OK(calls >= 3);
        MPI_Type_free(&t);
        EQ(MPI_File_close(&f), 0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (t_rank == 0) EQ(MPI_File_delete("io_datarep.b", NUL), 0);
    }
    if (t_rank == 0) EQ(MPI_File_delete("io_datarep.a", NUL), 0);
    return t_end();
}
