/* Files: collective accesses with interleaved pieces of many shapes, nonblocking and split ones, ordered mode, the shared
 * pointer; what is written is read back by other ranks, and the file is looked at without MPI. */
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
/* As rank 0 sees the file without MPI: rank r's piece p of `len` bytes, holes of `gap` bytes after each round of ranks. Holes
 * are zero; MPICH fills them with what its buffers had. */
static void compare(const char *name, int len, int gap, int pieces) {
    MPI_Barrier(W);
    if (t_rank == 0) {
        FILE *f = fopen(name, "rb");
        long wrong = 0, holes = 0, n = 0, round = (long)len * t_size + gap;
        OK(f != NULL);
        for (int c; f && (c = fgetc(f)) != EOF; n++) {
            long in = n - 100, p = in / round, at = in % round;
            if (in < 0 || at >= (long)len * t_size) holes += c != 0;
            else wrong += c != t_byte(at / len, len, p * len + at % len);
        }
        if (f) fclose(f);
        EQ(n, 100 + round * pieces - gap);
        EQ(wrong, 0);
        STRICT(holes == 0);
    }
    MPI_Barrier(W);
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
static MPI_File make(const char *name, MPI_Info info) {
    MPI_File f = MPI_FILE_NULL;
    MPI_Barrier(W);
    if (t_rank == 0) unlink(name);
    MPI_Barrier(W);
    EQ(MPI_File_open(W, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f), 0);
    return f;
}
/* Rank r has every size-th piece of `len` bytes, `gap` bytes of hole after each round. */
static MPI_Datatype strided(int len, int gap) {
    MPI_Datatype t, r;
    MPI_Type_contiguous(len, MPI_BYTE, &t);
    MPI_Type_create_resized(t, 0, (MPI_Aint)len * t_size + gap, &r);
    MPI_Type_free(&t);
    MPI_Type_commit(&r);
    return r;
}
static void interleaved(const char *name, MPI_Info info, int len, int gap, int pieces, int how) {
    MPI_File f = make(name, info);
    int bytes = len * pieces;
    unsigned char *a = malloc(2 * bytes + 1), *b = malloc(2 * bytes + 1);
    MPI_Datatype view = strided(len, gap), memory;
    MPI_Request q;
    /* Every other byte of memory. */
    MPI_Type_vector(bytes, 1, 2, MPI_BYTE, &memory);
    MPI_Type_commit(&memory);
    EQ(MPI_File_set_view(f, 100 + (MPI_Offset)t_rank * len, MPI_BYTE, view, "native", NUL), 0);
    t_fill(a, bytes, t_rank, len);
    switch (how) {
    case 0: EQ(MPI_File_write_all(f, a, bytes, MPI_BYTE, &st), 0); break;
    case 1: EQ(MPI_File_write_at_all(f, 0, a, bytes, MPI_BYTE, &st), 0); break;
    case 2:
        for (int i = 0; i < bytes; i++) b[2 * i] = a[i], b[2 * i + 1] = 0xbb;
        EQ(MPI_File_write_all(f, b, 1, memory, &st), 0);
        EQ(count(memory), 1);
        break;
    case 3:
        EQ(MPI_File_iwrite_all(f, a, bytes, MPI_BYTE, &q), 0);
        EQ(MPI_Wait(&q, &st), 0);
        break;
    default:
        EQ(MPI_File_write_all_begin(f, a, bytes, MPI_BYTE), 0);
        EQ(MPI_File_write_all_end(f, a, &st), 0);
    }
    EQ(count(MPI_BYTE), bytes);
    compare(name, len, gap, pieces);
    int other = (t_rank + 1) % t_size;
    EQ(MPI_File_set_view(f, 100 + (MPI_Offset)other * len, MPI_BYTE, view, "native", NUL), 0);
    memset(b, 0xcc, 2 * bytes);
    switch (how) {
    case 0: EQ(MPI_File_read_all(f, b, bytes, MPI_BYTE, &st), 0); break;
    case 1: EQ(MPI_File_read_at_all(f, 0, b, bytes, MPI_BYTE, &st), 0); break;
    case 2:
        EQ(MPI_File_read_all(f, b, 1, memory, &st), 0);
        for (int i = 0; i < bytes; i++) {
            if (i < bytes - 1 && b[2 * i + 1] != 0xcc) OK(!"a hole in memory was written");
        }
        for (int i = 0; i < bytes; i++) b[i] = b[2 * i];
        break;
    case 3:
        EQ(MPI_File_iread_at_all(f, 0, b, bytes, MPI_BYTE, &q), 0);
        EQ(MPI_Wait(&q, &st), 0);
        break;
    default:
        EQ(MPI_File_read_at_all_begin(f, 0, b, bytes, MPI_BYTE), 0);
        EQ(MPI_File_read_at_all_end(f, b, &st), 0);
    }
    EQ(count(MPI_BYTE), bytes);
    EQ(t_wrong(b, bytes, other, len), -1);
    MPI_Type_free(&view), MPI_Type_free(&memory);
    free(a), free(b);
    EQ(MPI_File_close(&f), 0);
    if (t_rank == 0) EQ(MPI_File_delete(name, NUL), 0);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_File f;
    MPI_Info info;
    MPI_Request q, qs[3];
    MPI_Offset o;
    unsigned char a[5000], b[5000];
    int n;

    PART("interleaved pieces");
    MPI_Info_create(&info);
    for (int how = 0; how < 5; how++) {
        interleaved("io_coll.a", NUL, 1, 0, 3000, how);
        interleaved("io_coll.a", NUL, 64, 0, 500, how);
        interleaved("io_coll.a", NUL, 7, 5, 1000, how);
        interleaved("io_coll.a", NUL, 5000, 3, 20, how);
        interleaved("io_coll.a", NUL, 40000, 0, 3, how);
    }
    PART("through small buffers, with any number of aggregators");
    MPI_Info_set(info, "cb_buffer_size", "4096");
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "romio_cb_read", "enable");
    for (int how = 0; how < 5; how++) {
        char nodes[8];
        sprintf(nodes, "%d", how % t_size + 1);
        MPI_Info_set(info, "cb_nodes", nodes);
        interleaved("io_coll.b", info, 13, 0, 900, how);
        interleaved("io_coll.b", info, 100, 1000, 50, how);
        interleaved("io_coll.b", info, 9000, 1, 5, how);
    }
    MPI_Info_set(info, "romio_cb_write", "disable");
    MPI_Info_set(info, "romio_cb_read", "disable");
    interleaved("io_coll.b", info, 13, 0, 900, 0);
    MPI_Info_free(&info);

    PART("unequal shares, some empty, short reads");
    f = make("io_coll.c", NUL);
    MPI_Datatype view = strided(10, 0);
    EQ(MPI_File_set_view(f, t_rank * 10, MPI_BYTE, view, "native", NUL), 0);
    int mine = t_rank % 3 == 2 ? 0 : 100 + 50 * t_rank;
    t_fill(a, mine, t_rank, 3);
    EQ(MPI_File_write_all(f, a, mine, MPI_BYTE, &st), 0);
    EQ(count(MPI_BYTE), mine);
    MPI_Barrier(W);
    memset(b, 0xcc, sizeof b);
    EQ(MPI_File_read_at_all(f, 0, b, mine, MPI_BYTE, &st), 0);
    EQ(t_wrong(b, mine, t_rank, 3), -1);
    MPI_File_get_size(f, &o);
    EQ(MPI_File_read_at_all(f, 0, b, 4000, MPI_BYTE, &st), 0);
    /* Bytes of this rank's view before the end of the file (ROMIO's collective reads report all that was asked for). */
    MPI_Offset have = 0;
    for (MPI_Offset at = t_rank * 10; at < o; at += 10 * t_size) have += o - at < 10 ? o - at : 10;
    STRICT(count(MPI_BYTE) == have);
    STRICT(b[have] == 0xcc);
    EQ(MPI_File_close(&f), 0);
    MPI_Type_free(&view);

    PART("several at once, out of step");
    f = make("io_coll.d", NUL);
    view = strided(20, 0);
    EQ(MPI_File_set_view(f, t_rank * 20, MPI_BYTE, view, "native", NUL), 0);
    for (int i = 0; i < 3; i++) {
        t_fill(a + i * 1000, 1000, t_rank, i);
        EQ(MPI_File_iwrite_at_all(f, i * 1000, a + i * 1000, 1000, MPI_BYTE, &qs[i]), 0);
    }
    MPI_Status sts[3];
    if (t_rank % 2) {
        for (int i = 2; i >= 0; i--) EQ(MPI_Wait(&qs[i], &sts[i]), 0);
    } else {
        EQ(MPI_Waitall(3, qs, sts), 0);
    }
    for (int i = 0; i < 3; i++) st = sts[i], EQ(count(MPI_BYTE), 1000);
    dump("io_coll.d");
    EQ(MPI_File_seek(f, 500, MPI_SEEK_SET), 0);
    EQ(MPI_File_iread_all(f, b, 1000, MPI_BYTE, &q), 0);
    MPI_File_get_position(f, &o);
    EQ(o, 1500);
    EQ(MPI_Wait(&q, &st), 0);
    for (int i = 0; i < 500; i++) EQ(b[i], t_byte(t_rank, 0, 500 + i)), EQ(b[i + 500], t_byte(t_rank, 1, i));
    EQ(MPI_File_close(&f), 0);
    MPI_Type_free(&view);

    PART("ordered");
    f = make("io_coll.e", NUL);
    mine = 10 * (t_rank + 1);
    t_fill(a, mine, t_rank, 4);
    EQ(MPI_File_write_ordered(f, a, mine, MPI_BYTE, &st), 0);
    EQ(count(MPI_BYTE), mine);
    EQ(MPI_File_write_ordered_begin(f, a, mine, MPI_BYTE), 0);
    EQ(MPI_File_write_ordered_end(f, a, &st), 0);
    int total = 10 * t_size * (t_size + 1) / 2;
    MPI_Barrier(W);
    EQ(MPI_File_get_position_shared(f, &o), 0);
    EQ(o, 2 * total);
    MPI_Barrier(W);
    dump("io_coll.e");
    EQ(MPI_File_seek_shared(f, total, MPI_SEEK_SET), 0);
    EQ(MPI_File_read_ordered(f, b, mine, MPI_BYTE, &st), 0);
    EQ(count(MPI_BYTE), mine);
    EQ(t_wrong(b, mine, t_rank, 4), -1);
    EQ(MPI_File_seek_shared(f, -2 * total, MPI_SEEK_END), 0);
    EQ(MPI_File_read_ordered_begin(f, b, mine, MPI_BYTE), 0);
    EQ(MPI_File_read_ordered_end(f, b, &st), 0);
    EQ(t_wrong(b, mine, t_rank, 4), -1);
    MPI_Barrier(W);

    PART("the shared pointer: each gets what nobody else gets");
    EQ(MPI_File_set_size(f, 0), 0);
    EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", NUL), 0);
    enum { EACH = 50 };
    int value;
    for (int i = 0; i < EACH; i++) {
        value = t_rank * EACH + i;
        if (i % 2) EQ(MPI_File_write_shared(f, &value, 1, MPI_INT, &st), 0);
        else {
            EQ(MPI_File_iwrite_shared(f, &value, 1, MPI_INT, &q), 0);
            EQ(MPI_Wait(&q, &st), 0);
        }
        EQ(count(MPI_INT), 1);
    }
    EQ(MPI_File_sync(f), 0);
    MPI_Barrier(W);
    EQ(MPI_File_get_position_shared(f, &o), 0);
    EQ(o, EACH * t_size);
    MPI_Barrier(W);
    EQ(MPI_File_get_size(f, &o), 0);
    EQ(o, 4 * EACH * t_size);
    EQ(MPI_File_seek_shared(f, 0, MPI_SEEK_SET), 0);
    int *seen = calloc(EACH * t_size, sizeof(int)), *all = calloc(EACH * t_size, sizeof(int));
    for (int i = 0; i < EACH; i++) {
        value = -1;
        if (i % 2) EQ(MPI_File_read_shared(f, &value, 1, MPI_INT, &st), 0);
        else {
            EQ(MPI_File_iread_shared(f, &value, 1, MPI_INT, &q), 0);
            EQ(MPI_Wait(&q, &st), 0);
        }
        if (OK(value >= 0 && value < EACH * t_size)) seen[value]++;
    }
    MPI_Allreduce(seen, all, EACH * t_size, MPI_INT, MPI_SUM, W);
    for (int i = 0; i < EACH * t_size; i++) EQ(all[i], 1);
    EQ(MPI_File_close(&f), 0);
    free(seen), free(all);

    PART("atomic mode: whoever is read is read whole");
    f = make("io_coll.f", NUL);
    EQ(MPI_File_set_atomicity(f, 1), 0);
    for (int i = 0; i < 20; i++) {
        memset(a, t_rank + 1, sizeof a);
        EQ(MPI_File_write_at(f, 0, a, sizeof a, MPI_BYTE, &st), 0);
        EQ(MPI_File_read_at(f, 0, b, sizeof b, MPI_BYTE, &st), 0);
        EQ(count(MPI_BYTE), (int)sizeof b);
        for (n = 1; n < (int)sizeof b && b[n] == b[0]; n++) {}
        STRICT(n == sizeof b);
        OK(b[0] >= 1 && b[0] <= t_size);
    }
    MPI_Datatype halves;
    MPI_Type_vector(2, 1000, 2000, MPI_BYTE, &halves);
    MPI_Type_commit(&halves);
    EQ(MPI_File_set_view(f, 0, MPI_BYTE, halves, "native", NUL), 0);
    for (int i = 0; i < 20; i++) {
        EQ(MPI_File_write_at(f, 0, a, 2000, MPI_BYTE, &st), 0);
        EQ(MPI_File_read_at(f, 0, b, 2000, MPI_BYTE, &st), 0);
        STRICT(b[0] == b[1999]);
    }
    MPI_Type_free(&halves);
    EQ(MPI_File_close(&f), 0);

    PART("part of the ranks");
    MPI_Comm half;
    MPI_Comm_split(W, t_rank % 2, t_rank, &half);
    char name[32];
    sprintf(name, "io_coll.g%d", t_rank % 2);
    EQ(MPI_File_open(half, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, NUL, &f), 0);
    int hr, hs;
    MPI_Comm_rank(half, &hr), MPI_Comm_size(half, &hs);
    MPI_Comm_free(&half);
    t_fill(a, 100, t_rank, 9);
    EQ(MPI_File_write_at_all(f, hr * 100, a, 100, MPI_BYTE, &st), 0);
    EQ(MPI_File_sync(f), 0);
    EQ(MPI_File_read_ordered(f, b, 100, MPI_BYTE, &st), 0);
    EQ(t_wrong(b, 100, t_rank, 9), -1);
    EQ(MPI_File_close(&f), 0);
    MPI_Barrier(W);
    if (t_rank == 0)
        for (char c = 'c'; c <= 'f'; c++) {
            char left[] = "io_coll.x";
            left[8] = c;
            EQ(MPI_File_delete(left, NUL), 0);
        }
    return t_end();
}
