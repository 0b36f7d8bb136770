/* watched [uninitialised|overflow]: data that others write into this rank's memory, all of it looked at, in buffers that had no value before: for a checker of
 * memory, which has nothing to say about it. With an argument there is something to say: rank 1 looks at a byte that nobody has sent, or receives
 * more than it has room for, at the rank's own request. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;

static unsigned char at(int owner, int round, int i)
{
    return (unsigned char)(owner * 31 + round * 7 + i * 13 + (i >> 8));
}

static unsigned char *fresh(int bytes)
{
    return malloc((size_t)bytes);
}

static void fill(unsigned char *buffer, int bytes, int owner, int round)
{
    for (int i = 0; i < bytes; i++)
        buffer[i] = at(owner, round, i);
}

static void look(const unsigned char *buffer, int bytes, int owner, int round)
{
    for (int i = 0; i < bytes; i++)
        if (buffer[i] != at(owner, round, i))
            wrong++;
}

/* One message to the right, however the two meet. */
static void messages(void)
{
    static const int lengths[] = {0, 1, 8, 64, 100, 4096, 30000, 70000, 400000};
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int k = 0; k < (int)(sizeof lengths / sizeof *lengths); k++)
        for (int way = 0; way < 4; way++) {
            int bytes = lengths[k];
            unsigned char *out = fresh(bytes), *in = fresh(bytes);
            MPI_Request request[2];
            MPI_Status status;
            fill(out, bytes, rank, k);
            if (way == 0) {
                MPI_Sendrecv(out, bytes, MPI_BYTE, right, 5, in, bytes, MPI_BYTE, left, 5, MPI_COMM_WORLD, &status);
            } else if (way == 1) { /* Posted first. */
                MPI_Irecv(in, bytes, MPI_BYTE, left, 5, MPI_COMM_WORLD, &request[0]);
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Isend(out, bytes, MPI_BYTE, right, 5, MPI_COMM_WORLD, &request[1]);
                MPI_Wait(&request[0], &status);
                MPI_Wait(&request[1], MPI_STATUS_IGNORE);
            } else if (way == 2) { /* Unexpected. */
                MPI_Isend(out, bytes, MPI_BYTE, right, 5, MPI_COMM_WORLD, &request[0]);
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
                MPI_Wait(&request[0], MPI_STATUS_IGNORE);
            } else {
                int flag = 0;
                MPI_Irecv(in, bytes, MPI_BYTE, left, 5, MPI_COMM_WORLD, &request[0]);
                MPI_Isend(out, bytes, MPI_BYTE, right, 5, MPI_COMM_WORLD, &request[1]);
                while (!flag)
                    MPI_Test(&request[0], &flag, &status);
                MPI_Wait(&request[1], MPI_STATUS_IGNORE);
            }
            int count;
            MPI_Get_count(&status, MPI_BYTE, &count);
            if (count != bytes || status.MPI_SOURCE != left || status.MPI_TAG != 5)
                wrong++;
            look(in, bytes, left, k);
            free(out);
            free(in);
            MPI_Barrier(MPI_COMM_WORLD);
        }
}

/* Every second of `n` blocks of `block` bytes: as blocks, or packed, as they are large or small. */
static void pieces(int block, int n)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, bytes = 2 * block * n;
    unsigned char *out = fresh(bytes), *in = fresh(bytes);
    MPI_Datatype type;
    MPI_Request request;
    MPI_Type_vector(n, block, 2 * block, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    fill(out, bytes, rank, n);
    for (int posted = 0; posted < 2; posted++) {
        if (posted)
            MPI_Irecv(in, 1, type, left, 6, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Request sent;
        MPI_Isend(out, 1, type, right, 6, MPI_COMM_WORLD, &sent);
        if (!posted)
            MPI_Irecv(in, 1, type, left, 6, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
        for (int i = 0; i < bytes; i++)
            if (i / block % 2 == 0 && in[i] != at(left, n, i))
                wrong++;
    }
    MPI_Type_free(&type);
    free(out);
    free(in);
}

/* What one rank leaves without a value in memory that ranks share must not be seen in what another puts there next. */
static void padded(void)
{
    struct padded {
        char c;
        long l;
    };
    for (int round = 0; round < 4 * size; round++) {
        int root = round % size;
        struct padded *one = malloc(sizeof *one);
        unsigned char *bytes = (unsigned char *)one;
        if (rank == root) {
            if (round / size % 2 == 0) {
                one->c = 'c';
                one->l = 7;
            } else {
                fill(bytes, sizeof *one, root, round);
            }
        }
        MPI_Bcast(one, sizeof *one, MPI_BYTE, root, MPI_COMM_WORLD);
        if (round / size % 2 == 0)
            wrong += one->c != 'c' || one->l != 7;
        else
            look(bytes, sizeof *one, root, round);
        free(one);
    }
}

static void collectives(void)
{
    static const int lengths[] = {8, 2000, 100000};
    padded();
    for (int k = 0; k < 3; k++) {
        int bytes = lengths[k], n = bytes / 8;
        unsigned char *mine = fresh(bytes), *all = fresh(bytes * size), *to = fresh(bytes * size);
        long *in = malloc((size_t)bytes), *out = malloc((size_t)bytes);
        if (rank == 1)
            fill(mine, bytes, 1, k);
        MPI_Bcast(mine, bytes, MPI_BYTE, 1, MPI_COMM_WORLD);
        look(mine, bytes, 1, k);
        fill(mine, bytes, rank, k);
        MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD);
        for (int peer = 0; peer < size; peer++) {
            look(all + (size_t)peer * bytes, bytes, peer, k);
            fill(to + (size_t)peer * bytes, bytes, rank, peer);
        }
        free(all);
        all = fresh(bytes * size);
        MPI_Alltoall(to, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD);
        for (int peer = 0; peer < size; peer++)
            look(all + (size_t)peer * bytes, bytes, peer, rank);
        for (int i = 0; i < n; i++)
            in[i] = rank + i;
        MPI_Allreduce(in, out, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++)
            wrong += out[i] != size * (size - 1) / 2 + (long)i * size;
        free(all);
        all = fresh(bytes * size);
        MPI_Request request;
        MPI_Igather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int peer = 0; rank == 0 && peer < size; peer++)
            look(all + (size_t)peer * bytes, bytes, peer, k);
        free(mine);
        free(all);
        free(to);
        free(in);
        free(out);
    }
}

static void windows(void)
{
    enum { BYTES = 100000 };
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int kind = 0; kind < 3; kind++) {
        unsigned char *memory = NULL, *out = fresh(BYTES), *in = fresh(BYTES);
        MPI_Aint base, there;
        MPI_Win win;
        if (kind == 0) {
            memory = fresh(2 * BYTES);
            MPI_Win_create(memory, 2 * BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        } else if (kind == 1) {
            MPI_Win_allocate(2 * BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        } else {
            memory = fresh(2 * BYTES);
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            MPI_Win_attach(win, memory, 2 * BYTES);
        }
        base = 0;
        if (kind == 2)
            MPI_Get_address(memory, &base);
        MPI_Sendrecv(&base, 1, MPI_AINT, left, 1, &there, 1, MPI_AINT, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fill(out, BYTES, rank, kind);
        /* Bytes without a value, where others put some. */
        unsigned char *nothing = fresh(64);
        memcpy(memory, nothing, 64);
        free(nothing);
        MPI_Win_fence(0, win);
        MPI_Put(out, BYTES, MPI_BYTE, right, there, BYTES, MPI_BYTE, win);
        MPI_Win_fence(0, win);
        look(memory, BYTES, left, kind);
        MPI_Get(in, BYTES, MPI_BYTE, right, there, BYTES, MPI_BYTE, win);
        MPI_Win_fence(0, win);
        look(in, BYTES, rank, kind);
        /* By the origin alone. */
        fill(out, BYTES, rank, kind + 10);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
        MPI_Put(out, BYTES, MPI_BYTE, right, there + BYTES, BYTES, MPI_BYTE, win);
        MPI_Win_unlock(right, win);
        MPI_Barrier(MPI_COMM_WORLD);
        look(memory + BYTES, BYTES, left, kind + 10);
        long one = 1, before, *counter = malloc(sizeof *counter);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, win);
        if (kind < 2) {
            memset(memory, 0, 8);
            MPI_Win_sync(win);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win);
            MPI_Win_flush(0, win);
            wrong += before < 0 || before >= size;
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Get_accumulate(NULL, 0, MPI_LONG, counter, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_NO_OP, win);
            MPI_Win_flush(0, win);
            wrong += *counter != size;
        }
        MPI_Win_unlock_all(win);
        free(counter);
        if (kind == 2)
            MPI_Win_detach(win, memory);
        MPI_Win_free(&win);
        if (kind != 1)
            free(memory);
        free(out);
        free(in);
    }
}

/* Interleaved, so that some ranks write and read for the others; then each for itself. */
static void files(const char *name)
{
    enum { BLOCK = 64, BLOCKS = 500 };
    unsigned char *out = fresh(BLOCK * BLOCKS), *in = fresh(BLOCK * BLOCKS), *own = fresh(BLOCK * BLOCKS);
    MPI_File file;
    MPI_Datatype type;
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * size, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    fill(out, BLOCK * BLOCKS, rank, 3);
    MPI_File_set_view(file, rank * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, out, BLOCK * BLOCKS, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_view(file, (rank + 1) % size * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL);
    MPI_File_read_all(file, in, BLOCK * BLOCKS, MPI_BYTE, MPI_STATUS_IGNORE);
    look(in, BLOCK * BLOCKS, (rank + 1) % size, 3);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, rank * BLOCK, own, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    look(own, BLOCK, rank, 3);
    MPI_File_close(&file);
    MPI_Type_free(&type);
    free(out);
    free(in);
    free(own);
}

static void planted(const char *what)
{
    int bytes = 200000;
    unsigned char *buffer = fresh(bytes);
    if (strcmp(what, "uninitialised") == 0) {
        if (rank == 0) {
            fill(buffer, bytes, 0, 0);
            MPI_Send(buffer, bytes - 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Recv(buffer, bytes - 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            look(buffer, bytes, 0, 0);
        }
        wrong = 0;
    } else if (rank == 0) {
        fill(buffer, bytes, 0, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Request request;
        unsigned char *small = fresh(bytes - 16);
        if (rank == 1)
            MPI_Irecv(small, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        free(small);
    }
    free(buffer);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2) {
        planted(argv[2]);
    } else {
        messages();
        pieces(10000, 8);
        pieces(300, 700);
        pieces(3, 20000);
        collectives();
        windows();
        files(argv[1]);
    }
    int all;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong\n", all);
    MPI_Finalize();
    return 0;
}
