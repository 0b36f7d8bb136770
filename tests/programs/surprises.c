/* surprises agree|dims|pointer FILE|clock|quad: what other MPIs do otherwise (findings/). Prints "0 wrong". */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size, wrong;

/* All ranks have the same bits, also of what no comparison can tell apart: `who` has NaN, or -0 where the others have 0. */
static void agree_on(MPI_Op op, int n, int who, int nan)
{
    size_t bytes = n * sizeof(double);
    double *in = malloc(bytes), *out = malloc(bytes), *all = malloc(bytes * size);
    for (int i = 0; i < n; i++)
        in[i] = rank == who ? (nan ? (i % 2 ? NAN : -NAN) : -0.0) : (nan ? rank + 1 / 3.0 : 0.0);
    for (int way = 0; way < 3; way++) {
        MPI_Request request;
        memcpy(out, in, bytes);
        if (way == 0) {
            MPI_Allreduce(in, out, n, MPI_DOUBLE, op, MPI_COMM_WORLD);
        } else if (way == 1) {
            MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_DOUBLE, op, MPI_COMM_WORLD);
        } else {
            MPI_Iallreduce(in, out, n, MPI_DOUBLE, op, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Gather(out, n, MPI_DOUBLE, all, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (int peer = 1; rank == 0 && peer < size; peer++)
            wrong += memcmp(all, all + (size_t)peer * n, bytes) != 0;
    }
    free(in);
    free(out);
    free(all);
}

static void agree(void)
{
    static const int lengths[] = {1, 17, 1000, 9000, 70000};
    MPI_Op ops[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD};
    for (int op = 0; op < 4; op++)
        for (int k = 0; k < 5; k++)
            for (int who = 0; who < size; who++)
                for (int nan = 0; nan < 2; nan++)
                    agree_on(ops[op], lengths[k], who, nan);
}

/* No other three factors of n are nearer to each other. */
static void dims(void)
{
    for (int n = 1; n <= 2000; n++) {
        int got[3] = {0, 0, 0}, least = n;
        MPI_Dims_create(n, 3, got);
        for (int a = 1; a <= n; a++)
            for (int b = 1; n % a == 0 && b <= a; b++)
                if (n / a % b == 0 && n / a / b <= b && a - n / a / b < least)
                    least = a - n / a / b;
        wrong += got[0] * got[1] * got[2] != n || got[0] - got[2] > least;
    }
}

/* A read that the file's end cuts short moves the pointer by what there was. */
static void pointer(const char *name)
{
    char room[100] = {0};
    int count;
    MPI_Offset at, bytes;
    MPI_File file;
    MPI_Status status;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, room, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_read(file, room, 100, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_File_get_position(file, &at);
    MPI_File_write(file, room, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_get_size(file, &bytes);
    wrong += count != 10 || at != 10 || bytes != 11;
    MPI_File_close(&file);
}

/* The clocks of a node's ranks are one: what was sent before is earlier, whenever the two have begun. */
static void clock_(void)
{
    double now, then;
    for (int turn = 0; turn < 100; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        now = MPI_Wtime();
        MPI_Sendrecv(&now, 1, MPI_DOUBLE, (rank + 1) % size, 0, &then, 1, MPI_DOUBLE, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += then > MPI_Wtime();
    }
}

/* external32 of a long double is an IEEE quad, and comes back. */
static void quad(void)
{
    static const unsigned char one[16] = {0x3f, 0xff}, third[16] = {0xbf, 0xfd, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x54};
    const long double values[] = {1, -1.0L / 3};
    for (int i = 0; i < 2; i++) {
        unsigned char packed[16];
        long double back = 0;
        MPI_Aint put = 0, got = 0;
        MPI_Pack_external("external32", &values[i], 1, MPI_LONG_DOUBLE, packed, 16, &put);
        MPI_Unpack_external("external32", packed, 16, &got, &back, 1, MPI_LONG_DOUBLE);
        /* The x87 has 64 bits of a third. */
        wrong += put != 16 || back != values[i] || memcmp(packed, i ? third : one, i ? 8 : 16) != 0;
    }
}

/* What a vector of -1 byte reverses, what is larger than -1, what wraps, what is too long for a message to oneself, and whose error handler a new communicator has. */
static void small(void)
{
    char text[] = "abcde", turned[6] = "";
    int position = 0, flag, code, class = MPI_SUCCESS, n, commutes[2];
    MPI_Datatype back;
    MPI_Type_vector(5, 1, -1, MPI_CHAR, &back);
    MPI_Type_commit(&back);
    MPI_Pack(text + 4, 1, back, turned, 5, &position, MPI_COMM_SELF);
    wrong += strcmp(turned, "edcba") != 0;
    MPI_Type_free(&back);
    MPI_Offset offsets[2] = {rank ? -1 : 5, rank ? -1 : 5}, least, most;
    MPI_Allreduce(&offsets[0], &least, 1, MPI_OFFSET, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&offsets[1], &most, 1, MPI_OFFSET, MPI_MAX, MPI_COMM_WORLD);
    wrong += least != -1 || most != 5;
    unsigned char bytes[99], sums[99];
    memset(bytes, 200, sizeof bytes);
    MPI_Allreduce(bytes, sums, 99, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 99; i++)
        wrong += sums[i] != (unsigned char)(200 * size);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Request request;
    int two[2] = {1, 2}, one[2] = {0, -7};
    MPI_Irecv(one, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_Send(two, 2, MPI_INT, 0, 0, MPI_COMM_SELF);
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    wrong += class != MPI_ERR_TRUNCATE || one[1] != -7;
    MPI_Group group;
    MPI_Comm made;
    MPI_Comm_group(MPI_COMM_SELF, &group);
    MPI_Comm_create(MPI_COMM_SELF, group, &made);
    MPI_Group_free(&group);
    wrong += MPI_Send(two, 1, MPI_INT, 7, 0, made) == MPI_SUCCESS;
    MPI_Comm_free(&made);
    MPI_Op_commutative(MPI_REPLACE, &commutes[0]);
    MPI_Op_commutative(MPI_NO_OP, &commutes[1]);
    wrong += commutes[0] || commutes[1];
    /* What is listed can be asked for, however few bytes the ABI has for its name. */
    MPI_Info info;
    MPI_Comm_get_info(MPI_COMM_WORLD, &info);
    MPI_Info_get_nkeys(info, &n);
    for (int i = 0; i < n; i++) {
        char key[MPI_MAX_INFO_KEY + 1], value[99];
        MPI_Info_get_nthkey(info, i, key);
        MPI_Info_get(info, key, 98, value, &flag);
        wrong += !flag;
        if (strcmp(key, "mpi_memory_alloc_kinds") == 0)
            wrong -= strcmp(value, "mpi,system") == 0;
    }
    wrong++;
    MPI_Info_free(&info);
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF, the one that was set last first; one that is set again is the last. */
static int deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    static const char *right[] = {"old", "newest", "third", "second"};
    static int at;
    wrong += at > 3 || strcmp(value, right[at]) != 0;
    if (++at == 4 && rank == 0)
        printf("%d wrong\n", wrong);
    return MPI_SUCCESS;
}

static void attributes(void)
{
    static char *values[] = {"old", "second", "third"};
    int keys[3];
    for (int i = 0; i < 3; i++) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keys[i], NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, keys[i], values[i]);
    }
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[0], "newest");
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    if (strcmp(argv[1], "clock") == 0 && getenv("VMPI_RANK") && atoi(getenv("VMPI_RANK")) % 2)
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(argv[1], "agree") == 0)
        agree();
    else if (strcmp(argv[1], "dims") == 0)
        dims();
    else if (strcmp(argv[1], "pointer") == 0)
        pointer(argv[2]);
    else if (strcmp(argv[1], "quad") == 0)
        quad();
    else if (strcmp(argv[1], "small") == 0)
        small();
    else if (strcmp(argv[1], "attributes") == 0)
        return attributes(), 0;
    else
        clock_();
    int all;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong\n", all);
    MPI_Finalize();
    return 0;
}
