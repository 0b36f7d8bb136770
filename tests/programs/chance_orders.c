/* What was taken, in order. orders wild N: N messages to rank 0 from anybody, with other work between; prints a hash, and the first ones.
   orders mix: probes, tests, MPI_Waitany, MPI_Waitsome, cancelled receives. orders deadlock1|deadlock2|deadlock3|race: wildcards that can go wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, size;

static MPI_T_pvar_session session;
static MPI_T_pvar_handle most;

/* Count the most messages that lie here at one time without a receive. */
static void count_held(void) {
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    if (MPI_T_pvar_get_index("vmpi_unexpected_messages_most", MPI_T_PVAR_CLASS_HIGHWATERMARK, &index) == MPI_SUCCESS) {
        MPI_T_pvar_handle_alloc(session, index, NULL, &most, &count);
        MPI_T_pvar_start(session, most);
    }
}

static void tell_held(void) {
    unsigned long long held = 0;
    MPI_T_pvar_read(session, most, &held);
    fprintf(stderr, "held %llu\n", held);
    MPI_T_pvar_handle_free(session, &most);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

static void wild(int count) {
    int each = count / (size - 1), value;
    if (me == 0)
        count_held();
    unsigned hash = 1;
    double begin = MPI_Wtime();
    if (me) {
        for (int i = 0; i < each; i++)
            MPI_Send(&i, 1, MPI_INT, 0, i % 3, MPI_COMM_WORLD);
    } else {
        MPI_Status status;
        for (int i = 0; i < each * (size - 1); i++) {
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            hash = hash * 31 + status.MPI_SOURCE;
            hash = hash * 31 + status.MPI_TAG;
            if (i < 12)
                printf("%d.%d ", status.MPI_SOURCE, status.MPI_TAG);
        }
        printf("hash %08x\n", hash);
        fprintf(stderr, "seconds %.6f\n", MPI_Wtime() - begin);
        tell_held();
    }
}

static void mix(void) {
    MPI_Request requests[64];
    MPI_Status status, statuses[64];
    int values[64], value, index, count, indices[64], flag, n = size - 1;
    if (me) {
        for (int round = 0; round < 6; round++)
            MPI_Send(&me, 1, MPI_INT, 0, round, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < n; i++) {
        MPI_Probe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
        printf("p%d ", status.MPI_SOURCE);
        MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < n; i++) {
        int misses = 0;
        while (MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, &status), !flag)
            misses++;
        MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("i%d:%d ", misses, value);
    }
    for (int i = 0; i < n; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < n; i++) {
        MPI_Waitany(n, requests, &index, &status);
        printf("a%d:%d ", index, status.MPI_SOURCE);
    }
    for (int i = 0; i < n; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, i + 1, 3, MPI_COMM_WORLD, &requests[i]);
    for (int done = 0; done < n; done += count) {
        MPI_Waitsome(n, requests, &count, indices, statuses);
        printf("s%d", count);
        for (int i = 0; i < count; i++)
            printf(":%d", indices[i]);
        printf(" ");
    }
    for (int i = 0; i < n; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &requests[i]);
    for (int done = 0; done < n;) {
        MPI_Testsome(n, requests, &count, indices, statuses);
        printf("t%d ", count);
        done += count;
    }
    for (int i = 0; i < n; i++) {
        MPI_Request one;
        int misses = 0;
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &one);
        while (MPI_Test(&one, &flag, &status), !flag)
            misses++;
        printf("r%d:%d ", misses, status.MPI_SOURCE);
    }
    MPI_Request never;
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &never);
    MPI_Cancel(&never);
    MPI_Wait(&never, &status);
    MPI_Test_cancelled(&status, &flag);
    printf("c%d\n", flag);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The receive from rank 1 waits for ever if the one before it took its message, which is sent last, but comes by another way. */
static void deadlock1(void) {
    int value;
    if (me == 0) {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (me == 2) {
        MPI_Send(&me, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Send(&me, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else if (me == 1) {
        MPI_Recv(&value, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&me, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
}

/* The receive from anybody, which is posted before the one from rank 2, takes that one's message. */
static void deadlock2(void) {
    int value;
    MPI_Request request;
    if (me == 0) {
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &request);
        MPI_Recv(&value, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (me < 3)
        MPI_Send(&me, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

/* A master deals out work, and takes a worker's first word for its last one if it comes late. */
static void deadlock3(void) {
    int value, go = 1;
    if (me == 0) {
        MPI_Status status;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        int first = status.MPI_SOURCE;
        MPI_Send(&go, 1, MPI_INT, first, 2, MPI_COMM_WORLD);
        if (first == 1)
            MPI_Recv(&value, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Recv(&value, 1, MPI_INT, 2, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (me < 3) {
        MPI_Send(&me, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        if (me == 1)
            MPI_Recv(&go, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Three receives, whose order nobody may rely on; the last rank's message first is a fault. */
static void race(void) {
    int values[3];
    if (me == 0) {
        for (int i = 0; i < 3; i++)
            MPI_Recv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (values[0] == 3 && values[1] == 2)
            MPI_Abort(MPI_COMM_WORLD, 3);
        printf("%d\n", values[0] + values[1] + values[2]);
    } else if (me < 4)
        MPI_Send(&me, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "mix";
    if (strcmp(what, "wild") == 0)
        wild(argc > 2 ? atoi(argv[2]) : 1000);
    else if (strcmp(what, "deadlock1") == 0)
        deadlock1();
    else if (strcmp(what, "deadlock2") == 0)
        deadlock2();
    else if (strcmp(what, "deadlock3") == 0)
        deadlock3();
    else if (strcmp(what, "race") == 0)
        race();
    else
        mix();
    MPI_Finalize();
    return 0;
}
