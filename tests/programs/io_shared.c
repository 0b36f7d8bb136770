/* The shared file pointer: all ranks at once, each record written and read exactly once; two files at once; files of some of the ranks, wherever their
 * first one lives; far positions; append and sequential mode. The files are looked at without MPI. */
#include "t.h"
#include <unistd.h>
#define W MPI_COMM_WORLD
#define NUL MPI_INFO_NULL
enum { EACH = 40, MOST = 700 };
static MPI_Status st;
static int count(MPI_Datatype t) {
    int n = -77;
    MPI_Get_count(&st, t, &n);
    return n;
}
/* Record `i` of rank `r`: its length, who and which, and bytes that follow from these. */
static int length(int r, int i) { return 12 + (i * 37 + r * 101) % (MOST - 12); }
static int record(unsigned char *to, int r, int i) {
    int head[3] = {length(r, i), r, i};
    memcpy(to, head, 12);
    for (int at = 12; at < head[0]; at++) to[at] = r * 31 + i * 7 + at;
    return head[0];
}
/* Without MPI: `ranks` ranks have written `each` records each into the file, one behind the other. */
static void whole(const char *name, int ranks, int each) {
    FILE *f = fopen(name, "rb");
    if (!OK(f != NULL)) return;
    char *seen = calloc(ranks * each, 1);
    unsigned char had[MOST], wanted[MOST];
    int head[3], records = 0;
    while (fread(head, 1, 12, f) == 12) {
        int r = head[1], i = head[2];
        if (!OK(r >= 0 && r < ranks && i >= 0 && i < each && head[0] == length(r, i) && !seen[r * each + i])) break;
        seen[r * each + i] = 1;
        memcpy(had, head, 12);
        EQ(fread(had + 12, 1, head[0] - 12, f), head[0] - 12);
        EQ(memcmp(had, wanted, record(wanted, r, i)), 0);
        records++;
    }
    EQ(records, ranks * each);
    fclose(f);
    free(seen);
}
static MPI_File make(MPI_Comm c, const char *name, int mode) {
    MPI_File f = MPI_FILE_NULL;
    int rank;
    MPI_Comm_rank(c, &rank);
    if (rank == 0) unlink(name);
    MPI_Barrier(c);
    EQ(MPI_File_open(c, name, MPI_MODE_CREATE | mode, NUL, &f), 0);
    return f;
}
/* All ranks of `c` write at once, in every way; then all read what there is, each record once. */
static void storm(MPI_Comm c, const char *name) {
    static unsigned char a[EACH][MOST], b[MOST];
    MPI_Request q[EACH];
    MPI_Status each[EACH];
    MPI_Offset o, total = 0;
    int rank, size, under_way = 0;
    MPI_Comm_rank(c, &rank), MPI_Comm_size(c, &size);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < EACH; i++) total += length(r, i);
    MPI_File f = make(c, name, MPI_MODE_RDWR);
    for (int i = 0; i < EACH; i++) {
        int n = record(a[i], rank, i);
        if (i % 3 == 0) EQ(MPI_File_iwrite_shared(f, a[i], n, MPI_BYTE, &q[under_way++]), 0);
        else {
            EQ(MPI_File_write_shared(f, a[i], n, MPI_BYTE, &st), 0);
            EQ(count(MPI_BYTE), n);
        }
    }
    EQ(MPI_Waitall(under_way, q, each), 0);
    EQ(MPI_File_sync(f), 0);
    MPI_Barrier(c);
    EQ(MPI_File_get_position_shared(f, &o), 0);
    EQ(o, total);
    MPI_Barrier(c);
    if (rank == 0) whole(name, size, EACH);
    EQ(MPI_File_seek_shared(f, 0, MPI_SEEK_SET), 0);
    /* Pieces of one length, which all bytes of the file are made of: nobody reads what another has read. */
    long long sum = 0, all, wanted = 0;
    for (;;) {
        EQ(MPI_File_read_shared(f, b, 512, MPI_BYTE, &st), 0);
        int n = count(MPI_BYTE);
        for (int i = 0; i < n; i++) sum += b[i];
        if (n < 512) break;
    }
    MPI_Allreduce(&sum, &all, 1, MPI_LONG_LONG, MPI_SUM, c);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < EACH; i++)
            for (int at = record(b, r, i); at--;) wanted += b[at];
    EQ(all, wanted);
    EQ(MPI_File_close(&f), 0);
    if (rank == 0) unlink(name);
}

int main(int argc, char **argv) {
    static unsigned char a[MOST], b[MOST];
    MPI_File f, g;
    MPI_Offset o, bytes;
    MPI_Comm part;
    char name[64];
    int rank, size;
    t_begin(&argc, &argv);

    PART("all at once");
    storm(W, "io_shared.a");

    PART("the last one first");
    MPI_Comm_split(W, 0, -t_rank, &part);
    storm(part, "io_shared.b");
    MPI_Comm_free(&part);

    PART("halves, each a file of its own");
    for (int way = 0; way < 2; way++) {
        int color = way ? t_rank % 2 : t_rank * 2 / t_size;
        MPI_Comm_split(W, color, t_rank, &part);
        sprintf(name, "io_shared.c%d", color);
        storm(part, name);
        MPI_Comm_free(&part);
    }

    PART("two files at once, each with a pointer of its own");
    f = make(W, "io_shared.d", MPI_MODE_RDWR), g = make(W, "io_shared.e", MPI_MODE_RDWR);
    for (int i = 0; i < EACH; i++) EQ(MPI_File_write_shared(i % 2 ? f : g, a, record(a, t_rank, i / 2), MPI_BYTE, &st), 0);
    EQ(MPI_File_close(&f), 0);
    MPI_Barrier(W);
    EQ(MPI_File_get_position_shared(g, &o), 0);
    EQ(MPI_File_close(&g), 0);
    bytes = 0;
    for (int r = 0; r < t_size; r++)
        for (int i = 0; i < EACH / 2; i++) bytes += length(r, i);
    EQ(o, bytes);
    MPI_Barrier(W);
    if (t_rank == 0) whole("io_shared.d", t_size, EACH / 2), whole("io_shared.e", t_size, EACH / 2);
    MPI_Barrier(W);

    PART("in rank order, some with nothing");
    f = make(W, "io_shared.f", MPI_MODE_RDWR);
    for (int i = 0; i < 9; i++) {
        int n = (t_rank + i) % 3 ? record(a, t_rank, i) : 0;
        if (i % 2) EQ(MPI_File_write_ordered(f, a, n, MPI_BYTE, &st), 0);
        else {
            EQ(MPI_File_write_ordered_begin(f, a, n, MPI_BYTE), 0);
            EQ(MPI_File_write_ordered_end(f, a, &st), 0);
        }
        EQ(count(MPI_BYTE), n);
    }
    EQ(MPI_File_seek_shared(f, 0, MPI_SEEK_SET), 0);
    for (int i = 0; i < 9; i++) {
        int n = (t_rank + i) % 3 ? record(a, t_rank, i) : 0;
        memset(b, 0, MOST);
        EQ(MPI_File_read_ordered(f, b, n, MPI_BYTE, &st), 0);
        EQ(memcmp(a, b, n), 0);
    }
    MPI_Barrier(W);
    if (t_rank == 0) {
        unsigned sum = 0;
        long n = 0;
        FILE *text = fopen("io_shared.f", "rb");
        for (int c; text && (c = fgetc(text)) != EOF; n++) sum = sum * 31 + c;
        if (text) fclose(text);
        say("in order: %ld bytes, sum %08x", n, sum);
    }
    EQ(MPI_File_close(&f), 0);

    PART("far away, in etypes of a view");
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    f = make(W, "io_shared.g", MPI_MODE_RDWR);
    EQ(MPI_File_set_view(f, 16, pair, pair, "native", NUL), 0);
    MPI_Offset far = (MPI_Offset)5 << 30; /* 40 GiB */
    EQ(MPI_File_seek_shared(f, far, MPI_SEEK_SET), 0);
    for (int i = 0; i < 5; i++) {
        int value[4] = {t_rank, i, -t_rank, -i};
        EQ(MPI_File_write_shared(f, value, 2, pair, &st), 0);
    }
    MPI_Barrier(W);
    EQ(MPI_File_get_position_shared(f, &o), 0);
    EQ(o, far + 10 * t_size);
    MPI_Barrier(W);
    EQ(MPI_File_seek_shared(f, -10 * t_size, MPI_SEEK_CUR), 0);
    int mine[100] = {0}, all[100];
    for (int i = 0; i < 5; i++) {
        int value[4];
        EQ(MPI_File_read_shared(f, value, 4, MPI_INT, &st), 0);
        if (OK(value[0] >= 0 && value[0] < t_size && value[0] < 20 && value[1] >= 0 && value[1] < 5)) mine[value[0] * 5 + value[1]]++;
        EQ(value[2], -value[0]), EQ(value[3], -value[1]);
    }
    MPI_Allreduce(mine, all, 100, MPI_INT, MPI_SUM, W);
    for (int i = 0; i < 5 * t_size && i < 100; i++) EQ(all[i], 1);
    EQ(MPI_File_get_size(f, &bytes), 0);
    EQ(bytes, 16 + 8 * (far + 10 * t_size));
    EQ(MPI_File_close(&f), 0);
    MPI_Type_free(&pair);

    PART("append");
    EQ(MPI_File_open(W, "io_shared.d", MPI_MODE_WRONLY | MPI_MODE_APPEND, NUL, &f), 0);
    for (int i = EACH / 2; i < EACH; i++) EQ(MPI_File_write_shared(f, a, record(a, t_rank, i), MPI_BYTE, &st), 0);
    EQ(MPI_File_close(&f), 0);
    MPI_Barrier(W);
    if (t_rank == 0) whole("io_shared.d", t_size, EACH);

    PART("sequential");
    f = make(W, "io_shared.h", MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    for (int i = 0; i < EACH; i++) EQ(MPI_File_write_shared(f, a, record(a, t_rank, i), MPI_BYTE, &st), 0);
    EQ(MPI_File_close(&f), 0);
    MPI_Barrier(W);
    if (t_rank == 0) whole("io_shared.h", t_size, EACH);

    PART("each alone");
    EQ(MPI_Comm_split(W, t_rank, 0, &part), 0);
    MPI_Comm_rank(part, &rank), MPI_Comm_size(part, &size);
    EQ(rank, 0), EQ(size, 1);
    sprintf(name, "io_shared.i%d", t_rank);
    storm(part, name);
    MPI_Comm_free(&part);
    if (t_rank == 0)
        for (char c = 'd'; c <= 'h'; c++) {
            char left[] = "io_shared.x";
            left[10] = c;
            EQ(unlink(left), 0);
        }
    return t_end();
}
