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
    else
        clock_();
    int all;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong\n", all);
    MPI_Finalize();
    return 0;
}
