/* Broadcasts and allreduces to which ranks come at different times: what each rank gets, to the bit, and when, is the same whether the simulation plays them or
 * their messages are sent. Some are too large for it, or of the program's own operation; messages are under way meanwhile, some of which a rank has to answer. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C"
#endif
int MPIX_Compute(double seconds) __attribute__((weak));

enum { ROUNDS = 24, BYTES = 50000, MOST = 40 };
static unsigned long long state;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % below;
}

static void own_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((double *)inout)[i] += ((double *)in)[i];
}

static unsigned long long bits(const void *data, size_t bytes)
{
    unsigned long long sum = 1469598103934665603ULL;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ ((const unsigned char *)data)[i]) * 1099511628211ULL;
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size, small = 0;
    MPI_Comm half, one[3];
    MPI_Op own;
    MPI_Datatype every_other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    one[0] = one[1] = MPI_COMM_WORLD, one[2] = half;
    MPI_Op_create(own_sum, 1, &own);
    MPI_Type_vector(5, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    state = 0x9e3779b97f4a7c15ULL * (rank + 1);
    char *out = calloc(1, BYTES), *in = calloc(1, BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[4];
        MPI_Comm comm = one[round % 3];
        int own_rank, members, to = (rank + 1 + round) % size, from = (rank + size * 2 - 1 - round) % size;
        double numbers[MOST], sums[MOST], least[2], own_sums[3];
        int holes[10], all[7];
        MPI_Comm_rank(comm, &own_rank);
        MPI_Comm_size(comm, &members);
        if (MPIX_Compute)
            MPIX_Compute(draw(5) * 2e-6);
        MPI_Irecv(in, BYTES, MPI_CHAR, from, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&small, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(out, round % 3 ? BYTES : 1, MPI_CHAR, to, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Issend(&rank, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[3]);
        for (int i = 0; i < MOST; i++) {
            numbers[i] = 1.0 / (3.0 + own_rank * 7 + i + round);
            sums[i] = -1;
        }
        /* 8 bytes, 128, 320. */
        int count = round % 4 == 0 ? 1 : round % 4 == 1 ? 16 : MOST;
        MPI_Allreduce(numbers, sums, count, MPI_DOUBLE, MPI_SUM, comm);
        double summed = MPI_Wtime();
        least[0] = numbers[0], least[1] = -numbers[1];
        MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_DOUBLE, MPI_MIN, comm);
        MPI_Allreduce(numbers, own_sums, 3, MPI_DOUBLE, own, comm);
        for (int i = 0; i < 7; i++)
            all[i] = 1 << ((own_rank + i) % 31);
        MPI_Allreduce(MPI_IN_PLACE, all, 7, MPI_INT, MPI_BOR, comm);
        for (int i = 0; i < 10; i++)
            holes[i] = own_rank * 100 + i;
        /* The root waits for nobody. */
        for (int i = 0; i < 3; i++)
            MPI_Bcast(holes, 1, every_other, round % members, comm);
        double told = MPI_Wtime();
        MPI_Bcast(sums, count, MPI_DOUBLE, (round * 5 + 1) % members, comm);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        printf("[%d] round %d: %016llx %016llx %016llx %016llx %016llx at %.12f, %.12f, %.12f\n", rank, round,
               bits(sums, count * sizeof *sums), bits(least, sizeof least), bits(own_sums, sizeof own_sums), bits(all, sizeof all),
               bits(holes, sizeof holes), summed, told, MPI_Wtime());
        for (int i = 0; i < 10; i += 2)
            if (i / 2 < 5 && holes[i] != round % members * 100 + i)
                printf("[%d] round %d: holes[%d] is %d\n", rank, round, i, holes[i]);
        for (int i = 1; i < 10; i += 2)
            if (holes[i] != own_rank * 100 + i)
                printf("[%d] round %d: what lies between was written\n", rank, round);
    }
    /* Of four bytes two ranks have room for two. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char letters[4] = "abc";
    int class = MPI_SUCCESS, code = MPI_Bcast(letters, rank == 0 || rank > 2 ? 4 : 2, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    printf("[%d] the end: %s\n", rank, class == MPI_SUCCESS ? "all" : class == MPI_ERR_TRUNCATE ? "too long" : "another error");
    MPI_Type_free(&every_other);
    MPI_Op_free(&own);
    MPI_Comm_free(&half);
    free(in), free(out);
    MPI_Finalize();
    return 0;
}
