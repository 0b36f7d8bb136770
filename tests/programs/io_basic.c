/* Files: open, close, delete, sizes, explicit offsets and individual pointers, views with holes, counts at the end of the
 * file, nonblocking accesses, info, group and mode. Files are made in the working directory. */
#include "t.h"
#include <unistd.h>
#define W MPI_COMM_WORLD
#define NUL MPI_INFO_NULL
static MPI_Status st;
static int count(MPI_Datatype t) {
    int n = -77;
    MPI_Get_count(&st, t, &n);
    return n;
}
static int elements(MPI_Datatype t) {
    int n = -77;
    MPI_Get_elements(&st, t, &n);
    return n;
}
static MPI_Offset size_of(MPI_File f) {
    MPI_Offset n = -77;
    EQ(MPI_File_get_size(f, &n), 0);
    return n;
}
static MPI_Offset position(MPI_File f) {
    MPI_Offset n = -77;
    EQ(MPI_File_get_position(f, &n), 0);
    return n;
}
static MPI_Offset byte_of(MPI_File f, MPI_Offset o) {
    MPI_Offset n = -77;
    EQ(MPI_File_get_byte_offset(f, o, &n), 0);
    return n;
}
/* What vmpi does beyond the peers: Open MPI's io/ompio hangs in a nonblocking read past the end, and ROMIO reports all that
 * was asked for. */
#define OURS (getenv("VMPI_JOBID") != NULL)
/* The whole file as rank 0 sees it without MPI: every byte is from rank data, or a hole, which vmpi and Open MPI leave zero
 * and MPICH fills with what its buffers had. `given(position)` tells the byte, -1 for a hole. */
static void compare(const char *name, int (*given)(long), long bytes) {
    MPI_Barrier(W);
    if (t_rank == 0) {
        FILE *f = fopen(name, "rb");
        long wrong = 0, holes = 0, n = 0;
        OK(f != NULL);
        for (int c; f && (c = fgetc(f)) != EOF; n++) {
            int wanted = given(n);
            if (wanted >= 0) wrong += c != wanted;
            else holes += c != 0;
        }
        if (f) fclose(f);
        EQ(n, bytes);
        EQ(wrong, 0);
        STRICT(holes == 0);
    }
    MPI_Barrier(W);
}
/* The ints of the view with holes: rank r's number n. */
static int times; /* how often they were overwritten */
static int given(long at) {
    int round = 2 * t_size + 1;
    long in = at - 7, number = in / 4;
    if (in < 0) return -1;
    long row = number / round, column = number % round;
    if (column == 2 * t_size) return -1;
    int r = column / 2, n = row * 2 + column % 2;
    if (n >= 20) return -1;
    int value = 1000 * r + n;
    if (times && n >= 2 && n < 12) value = -1000 * r - 3 * (n - 2);
    return ((unsigned char *)&value)[in % 4];
}
static void dump(const char *name) {
    MPI_Barrier(W);
    if (t_rank == 0) {
        unsigned sum = 0;
        long n = 0;
        FILE *f = fopen(name, "rb");
        OK(f != NULL);
        if (f)
            for (int c; (c = fgetc(f)) != EOF; n++) sum = sum * 31 + c;
        if (f) fclose(f);
        say("%s: %ld bytes, sum %08x", name, n, sum);
    }
    MPI_Barrier(W);
}
static MPI_File make(const char *name, int amode) {
    MPI_File f = MPI_FILE_NULL;
    MPI_Barrier(W);
    if (t_rank == 0) unlink(name);
    MPI_Barrier(W);
    EQ(MPI_File_open(W, name, amode | MPI_MODE_CREATE, NUL, &f), 0);
    return f;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_File f, g;
    unsigned char a[4096], b[4096];
    int ints[64], back[64], n, flag;
    MPI_Request q[4];

    PART("explicit offsets");
    f = make("io_basic.a", MPI_MODE_RDWR);
    EQ(size_of(f), 0);
    MPI_Barrier(W);
    t_fill(a, 1000, t_rank, 1);
    EQ(MPI_File_write_at(f, t_rank * 1000, a, 1000, MPI_BYTE, &st), 0);
    EQ(count(MPI_BYTE), 1000);
    EQ(MPI_File_sync(f), 0);
    MPI_Barrier(W);
    EQ(MPI_File_sync(f), 0);
    EQ(size_of(f), t_size * 1000);
    int other = (t_rank + 1) % t_size;
    memset(b, 0, sizeof b);
    EQ(MPI_File_read_at(f, other * 1000, b, 1000, MPI_BYTE, &st), 0);
    EQ(count(MPI_BYTE), 1000);
    EQ(t_wrong(b, 1000, other, 1), -1);
    EQ(position(f), 0);

    PART("short reads at the end");
    memset(b, 0xee, sizeof b);
    EQ(MPI_File_read_at(f, t_size * 1000 - 10, b, 100, MPI_BYTE, &st), 0);
    EQ(count(MPI_BYTE), 10);
    EQ(b[10], 0xee);
    EQ(MPI_File_read_at(f, t_size * 1000 - 10, ints, 4, MPI_INT, &st), 0);
    EQ(count(MPI_INT), MPI_UNDEFINED);
    EQ(elements(MPI_BYTE), 10);
    EQ(MPI_File_read_at(f, t_size * 1000 - 8, ints, 4, MPI_INT, &st), 0);
    EQ(count(MPI_INT), 2);
    EQ(MPI_File_read_at(f, t_size * 1000, b, 100, MPI_BYTE, &st), 0);
    EQ(count(MPI_BYTE), 0);
    EQ(MPI_File_read_at(f, t_size * 5000, b, 100, MPI_BYTE, &st), 0);
    EQ(count(MPI_BYTE), 0);
    EQ(MPI_File_read_at(f, 0, b, 0, MPI_BYTE, &st), 0);
    EQ(count(MPI_BYTE), 0);

    PART("individual pointer");
    EQ(MPI_File_seek(f, t_rank * 1000, MPI_SEEK_SET), 0);
    EQ(MPI_File_read(f, b, 100, MPI_BYTE, &st), 0);
    EQ(t_wrong(b, 100, t_rank, 1), -1);
    EQ(position(f), t_rank * 1000 + 100);
    EQ(MPI_File_seek(f, -50, MPI_SEEK_CUR), 0);
    EQ(position(f), t_rank * 1000 + 50);
    EQ(MPI_File_seek(f, -10, MPI_SEEK_END), 0);
    EQ(position(f), t_size * 1000 - 10);
    EQ(MPI_File_read(f, b, 100, MPI_BYTE, &st), 0);
    EQ(count(MPI_BYTE), 10);
    /* Open MPI moves it by what was asked for. */
    OK(position(f) == t_size * 1000 || (!OURS && position(f) == t_size * 1000 + 90));
    EQ(MPI_File_seek(f, 100, MPI_SEEK_END), 0);
    EQ(position(f), t_size * 1000 + 100);
    dump("io_basic.a");

    PART("sizes");
    MPI_Barrier(W);
    EQ(MPI_File_set_size(f, 500), 0);
    EQ(size_of(f), 500);
    MPI_Barrier(W);
    EQ(MPI_File_set_size(f, 3000), 0);
    EQ(size_of(f), 3000);
    MPI_Barrier(W);
    EQ(MPI_File_read_at(f, 400, b, 200, MPI_BYTE, &st), 0);
    EQ(b[100] | b[199], 0);
    MPI_Barrier(W);
    EQ(MPI_File_preallocate(f, 10000), 0);
    EQ(size_of(f), 10000);
    MPI_Barrier(W);
    EQ(MPI_File_preallocate(f, 100), 0);
    EQ(size_of(f), 10000);
    MPI_Barrier(W);
    EQ(MPI_File_set_size(f, 0), 0);
    EQ(size_of(f), 0);
    MPI_Barrier(W);
    EQ(MPI_File_close(&f), 0);
    OK(f == MPI_FILE_NULL);

    PART("a view with holes: every rank its ints");
    f = make("io_basic.b", MPI_MODE_RDWR);
    MPI_Datatype t, r;
    MPI_Type_vector(3, 2, 2 * t_size + 1, MPI_INT, &t);
    MPI_Type_create_resized(t, 0, (3 * (2 * t_size + 1)) * sizeof(int), &r);
    MPI_Type_commit(&r);
    EQ(MPI_File_set_view(f, 7 + t_rank * 2 * sizeof(int), MPI_INT, r, "native", NUL), 0);
    for (n = 0; n < 20; n++) ints[n] = 1000 * t_rank + n;
    EQ(MPI_File_write(f, ints, 20, MPI_INT, &st), 0);
    EQ(count(MPI_INT), 20);
    EQ(position(f), 20);
    EQ(byte_of(f, 0), 7 + t_rank * 8);
    EQ(byte_of(f, 2), 7 + t_rank * 8 + (2 * t_size + 1) * 4);
    say("byte offsets %lld %lld", (long long)byte_of(f, 6), (long long)byte_of(f, 13));
    long whole = 7 + (long)(9 * (2 * t_size + 1) + 2 * t_size) * 4;
    compare("io_basic.b", given, whole);
    EQ(MPI_File_seek(f, 5, MPI_SEEK_SET), 0);
    EQ(MPI_File_read(f, back, 10, MPI_INT, &st), 0);
    for (n = 0; n < 10; n++) EQ(back[n], ints[n + 5]);
    MPI_Barrier(W);

    PART("a view into memory with holes");
    MPI_Datatype m;
    MPI_Type_vector(10, 1, 3, MPI_INT, &m);
    MPI_Type_commit(&m);
    memset(back, 0xff, sizeof back);
    EQ(MPI_File_read_at(f, 3, back, 1, m, &st), 0);
    EQ(count(m), 1);
    EQ(elements(MPI_INT), 10);
    for (n = 0; n < 10; n++) EQ(back[3 * n], ints[n + 3]), EQ(back[3 * n + 1], -1);
    EQ(MPI_File_read_at(f, 15, back, 1, m, &st), 0);
    STRICT(count(m) == MPI_UNDEFINED && elements(MPI_INT) == 5);
    MPI_Barrier(W);
    for (n = 0; n < 30; n++) back[n] = -1000 * t_rank - n;
    EQ(MPI_File_write_at(f, 2, back, 1, m, &st), 0);
    times = 1;
    compare("io_basic.b", given, whole);

    PART("what the view is");
    MPI_Offset disp;
    MPI_Datatype et, ft;
    char rep[MPI_MAX_DATAREP_STRING];
    int in, ad, ty, combiner;
    EQ(MPI_File_get_view(f, &disp, &et, &ft, rep), 0);
    EQ(disp, 7 + t_rank * 8);
    OK(et == MPI_INT);
    OK(!strcmp(rep, "native"));
    MPI_Type_size(ft, &n);
    EQ(n, 24);
    MPI_Type_get_envelope(ft, &in, &ad, &ty, &combiner);
    OK(combiner != MPI_COMBINER_NAMED);
    MPI_Type_free(&ft);
    MPI_Aint extent;
    EQ(MPI_File_get_type_extent(f, r, &extent), 0);
    EQ(extent, 3 * (2 * t_size + 1) * 4);
    EQ(MPI_File_seek(f, 0, MPI_SEEK_END), 0);
    /* The last rank's data end with the file; Open MPI counts the file's bytes instead of the view's. */
    STRICT(t_rank < t_size - 1 || position(f) == 20);
    EQ(MPI_File_close(&f), 0);
    MPI_Type_free(&t), MPI_Type_free(&r), MPI_Type_free(&m);

    PART("darray and subarray views");
    f = make("io_basic.c", MPI_MODE_RDWR);
    int sizes[2] = {12, 10}, dist[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, args[2] = {2, MPI_DISTRIBUTE_DFLT_DARG};
    int grid[2] = {t_size, 1};
    MPI_Type_create_darray(t_size, t_rank, 2, sizes, dist, args, grid, MPI_ORDER_C, MPI_INT, &t);
    MPI_Type_commit(&t);
    MPI_Type_size(t, &n);
    EQ(MPI_File_set_view(f, 16, MPI_INT, t, "native", NUL), 0);
    int mine[240];
    for (int i = 0; i < 240; i++) mine[i] = t_rank * 10000 + i;
    EQ(MPI_File_write(f, mine, n / 4, MPI_INT, &st), 0);
    EQ(count(MPI_INT), n / 4);
    dump("io_basic.c");
    MPI_Type_free(&t);
    int sub[2] = {12, 3}, start[2] = {0, 4};
    MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_FORTRAN, MPI_INT, &t);
    MPI_Type_commit(&t);
    EQ(MPI_File_set_view(f, 16, MPI_INT, t, "native", NUL), 0);
    EQ(MPI_File_read(f, mine, 36, MPI_INT, &st), 0);
    unsigned sum = 0;
    for (int i = 0; i < 36; i++) sum = sum * 17 + mine[i];
    say("subarray %u", sum);
    MPI_Type_free(&t);
    EQ(MPI_File_close(&f), 0);

    PART("nonblocking");
    f = make("io_basic.d", MPI_MODE_RDWR);
    t_fill(a, 4000, t_rank, 2);
    for (int i = 0; i < 4; i++) EQ(MPI_File_iwrite_at(f, t_rank * 4000 + i * 1000, a + i * 1000, 1000, MPI_BYTE, &q[i]), 0);
    MPI_Status sts[4];
    EQ(MPI_Waitall(4, q, sts), 0);
    for (int i = 0; i < 4; i++) {
        OK(q[i] == MPI_REQUEST_NULL);
        st = sts[i];
        EQ(count(MPI_BYTE), 1000);
    }
    EQ(MPI_File_sync(f), 0);
    MPI_Barrier(W);
    EQ(MPI_File_seek(f, other * 4000, MPI_SEEK_SET), 0);
    EQ(MPI_File_iread(f, b, 2000, MPI_BYTE, &q[0]), 0);
    EQ(MPI_File_iread(f, b + 2000, 2000, MPI_BYTE, &q[1]), 0);
    EQ(position(f), other * 4000 + 4000);
    for (flag = 0; !flag;) EQ(MPI_Test(&q[1], &flag, &st), 0);
    EQ(count(MPI_BYTE), 2000);
    EQ(MPI_Wait(&q[0], &st), 0);
    EQ(t_wrong(b, 4000, other, 2), -1);
    if (OURS) {
        EQ(MPI_File_iread_at(f, t_size * 4000 - 3, b, 10, MPI_BYTE, &q[0]), 0);
        EQ(MPI_Wait(&q[0], &st), 0);
        EQ(count(MPI_BYTE), 3);
    }
    MPI_Barrier(W);
    EQ(MPI_File_seek(f, t_rank * 4000, MPI_SEEK_SET), 0);
    EQ(MPI_File_iwrite(f, a, 100, MPI_BYTE, &q[0]), 0);
    EQ(MPI_Wait(&q[0], MPI_STATUS_IGNORE), 0);
    EQ(position(f), t_rank * 4000 + 100);
    EQ(MPI_File_close(&f), 0);
    dump("io_basic.d");

    PART("mode, group, info, append");
    f = make("io_basic.e", MPI_MODE_WRONLY);
    EQ(MPI_File_get_amode(f, &n), 0);
    EQ(n, MPI_MODE_WRONLY | MPI_MODE_CREATE);
    MPI_Group group, world;
    EQ(MPI_File_get_group(f, &group), 0);
    MPI_Comm_group(W, &world);
    MPI_Group_compare(group, world, &n);
    EQ(n, MPI_IDENT);
    MPI_Group_free(&group), MPI_Group_free(&world);
    if (t_rank == 0) EQ(MPI_File_write_at(f, 0, a, 77, MPI_BYTE, &st), 0);
    EQ(MPI_File_close(&f), 0);
    EQ(MPI_File_open(W, "io_basic.e", MPI_MODE_RDWR | MPI_MODE_APPEND, NUL, &f), 0);
    EQ(position(f), 77);
    MPI_Offset shared;
    EQ(MPI_File_get_position_shared(f, &shared), 0);
    EQ(shared, 77);
    /* Who is ready writes at once: the others began where the file ended before that. */
    for (int round = 0; round < 30; round++) {
        EQ(MPI_File_close(&f), 0);
        MPI_Barrier(W);
        MPI_Offset before = 77 + round * 1000 * t_size;
        EQ(MPI_File_open(W, "io_basic.e", MPI_MODE_RDWR | MPI_MODE_APPEND, NUL, &f), 0);
        MPI_Offset here = position(f);
        EQ(MPI_File_write_at(f, before + t_rank * 1000, a, 1000, MPI_BYTE, &st), 0);
        EQ(here, before);
    }
    EQ(MPI_File_get_atomicity(f, &flag), 0);
    EQ(flag, 0);
    EQ(MPI_File_set_atomicity(f, 1), 0);
    EQ(MPI_File_get_atomicity(f, &flag), 0);
    EQ(flag, 1);
    EQ(MPI_File_close(&f), 0);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "65536");
    MPI_Info_set(info, "no_such_hint_at_all", "1");
    EQ(MPI_File_open(W, "io_basic.e", MPI_MODE_RDONLY, info, &f), 0);
    MPI_Info_free(&info);
    EQ(MPI_File_get_info(f, &info), 0);
    char value[64] = "";
    MPI_Info_get(info, "cb_buffer_size", 63, value, &flag);
    STRICT(flag && !strcmp(value, "65536"));
    MPI_Info_get(info, "no_such_hint_at_all", 63, value, &flag);
    STRICT(!flag);
    MPI_Info_free(&info);
    EQ(MPI_File_close(&f), 0);

    PART("two files at once, delete on close, delete");
    f = make("io_basic.f", MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    EQ(MPI_File_open(MPI_COMM_SELF, "io_basic.e", MPI_MODE_RDONLY, NUL, &g), 0);
    EQ(MPI_File_write_at(f, t_rank, a, 1, MPI_BYTE, &st), 0);
    EQ(size_of(g), 77 + 30 * 1000 * t_size);
    EQ(MPI_File_close(&g), 0);
    EQ(MPI_File_close(&f), 0);
    EQ(access("io_basic.f", F_OK), -1);
    MPI_Barrier(W);
    if (t_rank == 0)
        for (char c = 'a'; c <= 'e'; c++) {
            char name[] = "io_basic.x";
            name[9] = c;
            EQ(MPI_File_delete(name, NUL), 0);
            EQ(access(name, F_OK), -1);
        }
    return t_end();
}
