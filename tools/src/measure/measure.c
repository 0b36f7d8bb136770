/* What messages between two ranks take, for `vmpictl machine measure`. Lines: `same` (whether the ranks share a host), `overheads` (send, receive,
 * gap), `time` (bytes, half a round trip), `eager` (the largest message that is sent before its receive is posted); times in us. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 15, MOST = 4 << 20, SMALL = 1, SIZES = 17, SWEEPS = 9, OF_A_SWEEP = 2 };

static int rank;
static char *data;

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, count, sizeof *values, by_size);
    return values[count / 2];
}

static void spin(double us) {
    double until = MPI_Wtime() + us / 1e6;
    while (MPI_Wtime() < until) {}
}

static void there_and_back(int bytes) {
    if (rank == 0) {
        MPI_Send(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
}

/* All sizes in turn, several times: what else the machine does for some milliseconds then spoils a few values of a size, and not all of them. */
static void half_round_trips(const int *sizes, double *us) {
    static double batches[SIZES][SWEEPS * OF_A_SWEEP];
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int size = 0; size < SIZES; size++)
            for (int batch = -1; batch < OF_A_SWEEP; batch++) {
                int rounds = sizes[size] < 65536 ? 200 : 20;
                double begin = MPI_Wtime();
                for (int i = 0; i < rounds; i++) there_and_back(sizes[size]);
                double took = (MPI_Wtime() - begin) / rounds / 2 * 1e6;
                if (batch >= 0) batches[size][sweep * OF_A_SWEEP + batch] = took;
            }
    for (int size = 0; size < SIZES; size++) us[size] = median(batches[size], SWEEPS * OF_A_SWEEP);
}

/* How long rank 0 is in MPI_Send, and in MPI_Recv of what has come already. */
static void overheads(double *send, double *receive) {
    enum { ROUNDS = 301 };
    double sends[ROUNDS], receives[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        if (rank == 0) {
            double begin = MPI_Wtime();
            MPI_Send(data, SMALL, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            double sent = MPI_Wtime();
            spin(100);
            double waited = MPI_Wtime();
            MPI_Recv(data, SMALL, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sends[i] = (sent - begin) * 1e6;
            receives[i] = (MPI_Wtime() - waited) * 1e6;
        } else {
            there_and_back(SMALL);
        }
    }
    if (rank == 0) *send = median(sends, ROUNDS), *receive = median(receives, ROUNDS);
}

/* From one of many small messages to the next. */
static double gap(void) {
    enum { MESSAGES = 500 };
    double batches[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin = MPI_Wtime();
        for (int i = 0; i < MESSAGES; i++) {
            if (rank == 0) MPI_Send(data, SMALL, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            else MPI_Recv(data, SMALL, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        there_and_back(SMALL);
        batches[batch] = (MPI_Wtime() - begin) / MESSAGES * 1e6;
    }
    return median(batches, BATCHES);
}

/* Whether MPI_Send of so many bytes returns long before the receive is posted. */
static int is_eager(int bytes) {
    double took = 0;
    there_and_back(SMALL);
    if (rank == 0) {
        double begin = MPI_Wtime();
        MPI_Send(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        took = MPI_Wtime() - begin;
    } else {
        spin(20000);
        MPI_Recv(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return took < 0.01;
}

int main(int argc, char **argv) {
    int size, together, eager = 0, goes_on = 1;
    double send = 0, receive = 0;
    MPI_Comm host;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &together);
    data = calloc(1, MOST);
    if (rank == 0) printf("same %d\n", together == 2);
    for (int i = 0; i < 2000; i++) there_and_back(SMALL);
    overheads(&send, &receive);
    double between = gap();
    if (rank == 0) printf("overheads %.4f %.4f %.4f\n", send, receive, between);
    int sizes[SIZES];
    double us[SIZES];
    for (int size = 0; size < SIZES; size++) sizes[size] = size == 0 ? 1 : 64 << size;
    half_round_trips(sizes, us);
    for (int size = 0; size < SIZES && rank == 0; size++) printf("time %d %.4f\n", sizes[size], us[size]);
    for (int bytes = 128; bytes <= MOST && goes_on; bytes *= 2) {
        goes_on = is_eager(bytes);
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (goes_on) eager = bytes;
    }
    if (rank == 0) printf("eager %d\n", eager);
    MPI_Finalize();
    return 0;
}
