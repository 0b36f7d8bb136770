/* Programs with a fault that the usual order of things hides, and their twins without it: chance_faults NAME bad|good. Exit code 3: the fault has shown. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, size;

static void wrong(const char *what) {
    printf("rank %d: %s\n", me, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

/* A word from rank to rank: each goes on when the one before it has sent. */
static void after_the_one_before(int *token) {
    if (me > 1)
        MPI_Recv(token, 1, MPI_INT, me - 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void before_the_next(int *token) {
    if (me && me + 1 < size)
        MPI_Send(token, 1, MPI_INT, me + 1, 99, MPI_COMM_WORLD);
}

/* Both send first, and rely on a buffer for it. */
static void head_to_head(int good) {
    int mine = me, theirs, peer = me ^ 1;
    if (peer >= size)
        return;
    if (good && me % 2) {
        MPI_Recv(&theirs, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&mine, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
    } else {
        MPI_Send(&mine, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
        MPI_Recv(&theirs, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Messages of several ranks are taken to come in their order. */
static void any_source_order(int good) {
    int value, token = 0;
    after_the_one_before(&token);
    if (me)
        MPI_Send(&me, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    before_the_next(&token);
    if (!me)
        for (int from = 1; from < size; from++) {
            MPI_Recv(&value, 1, MPI_INT, good ? from : MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (value != from)
                wrong("another rank's message came first");
        }
}

/* What was sent first is taken to come first, though by another way. */
static void by_another_way(int good) {
    int value = me, first;
    if (me == 1) {
        MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Send(&value, 1, MPI_INT, 2, 1, MPI_COMM_WORLD);
    } else if (me == 2) {
        MPI_Recv(&first, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    } else if (me == 0) {
        MPI_Recv(&first, 1, MPI_INT, good ? 1 : MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, good ? 2 : MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (first != 1)
            wrong("the message that was sent last came first");
    }
}

/* A probe sees one message, and the receive that follows takes another one. */
static void probe_races(int good) {
    MPI_Status status;
    char buffer[64];
    if (me == 0) {
        for (int i = 1; i < size; i++) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            int bytes, source = status.MPI_SOURCE;
            MPI_Get_count(&status, MPI_CHAR, &bytes);
            MPI_Recv(buffer, 64, MPI_CHAR, good ? source : MPI_ANY_SOURCE, good ? status.MPI_TAG : MPI_ANY_TAG,
                     MPI_COMM_WORLD, &status);
            int got;
            MPI_Get_count(&status, MPI_CHAR, &got);
            if (got != bytes)
                wrong("another message than the one probed for");
        }
    } else {
        memset(buffer, me, sizeof buffer);
        MPI_Send(buffer, me, MPI_CHAR, 0, me, MPI_COMM_WORLD);
    }
}

/* A message, large enough to be written straight into the buffer, is read before the wait for it. */
enum { LARGE = 1 << 18 };
static int large[LARGE];

static void missing_wait(int good) {
    int token = 0;
    MPI_Request request;
    if (me == 0) {
        MPI_Irecv(large, LARGE, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Recv(&token, 1, MPI_INT, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (good)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (large[LARGE - 1] != 42)
            wrong("the value has not come yet");
        if (!good)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (me == 1) {
        large[LARGE - 1] = 42;
        MPI_Isend(large, LARGE, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
        MPI_Send(&token, 1, MPI_INT, 2, 3, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (me == 2) {
        MPI_Recv(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    }
}

/* A sum in the order in which its terms come. */
static void sum_by_arrival(int good) {
    double sum = 0, term = me == 1 ? 1e16 : me == 2 ? 1 : me == 3 ? -1e16 : 1;
    if (me) {
        MPI_Send(&term, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        return;
    }
    for (int from = 1; from < size; from++) {
        MPI_Recv(&term, 1, MPI_DOUBLE, good ? from : MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += term;
    }
    printf("sum %.17g\n", sum);
}

/* What another rank puts is read without waiting for it. */
static void fence_forgotten(int good) {
    int *memory, value = 7;
    MPI_Win window;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    *memory = 0;
    MPI_Win_fence(0, window);
    if (me == 1)
        MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    if (good)
        MPI_Win_fence(0, window);
    int token = 0;
    /* Round the other ranks and back: rank 1 has had its turn by then, as a rule. */
    if (me == 0) {
        MPI_Send(&token, 1, MPI_INT, 2, 5, MPI_COMM_WORLD);
        MPI_Recv(&token, 1, MPI_INT, 3, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (*memory != 7)
            wrong("what was put is not there");
    } else if (me == 2 || me == 3) {
        MPI_Recv(&token, 1, MPI_INT, me == 2 ? 0 : 2, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&token, 1, MPI_INT, me == 2 ? 3 : 0, 5, MPI_COMM_WORLD);
    }
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

/* MPI_Waitany is taken to go by index. */
static void waitany_order(int good) {
    MPI_Request requests[16];
    int values[16], index, token = 0;
    after_the_one_before(&token);
    if (me) {
        MPI_Send(&me, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        before_the_next(&token);
        return;
    }
    for (int from = 1; from < size; from++)
        MPI_Irecv(&values[from - 1], 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[from - 1]);
    for (int i = 0; i < size - 1; i++) {
        MPI_Waitany(size - 1, requests, &index, MPI_STATUS_IGNORE);
        if (!good && index != i)
            wrong("another request was complete first");
    }
}

/* A message to itself is sent before its receive is there. */
static void to_itself(int good) {
    int value;
    MPI_Request request = MPI_REQUEST_NULL;
    if (good)
        MPI_Irecv(&value, 1, MPI_INT, me, 1, MPI_COMM_WORLD, &request);
    MPI_Send(&me, 1, MPI_INT, me, 1, MPI_COMM_WORLD);
    if (!good)
        MPI_Irecv(&value, 1, MPI_INT, me, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* What one test says is taken for what all would say. */
static void tested_once(int good) {
    int value = -1, flag = 0;
    MPI_Request request;
    if (me == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        do
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        while (good && !flag);
        if (!flag)
            wrong("the message has not come yet");
    } else {
        if (me == 1)
            MPI_Send(&me, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static const struct {
    const char *name;
    void (*run)(int good);
} faults[] = {
    {"head_to_head", head_to_head}, {"any_source_order", any_source_order}, {"by_another_way", by_another_way},
    {"probe_races", probe_races},   {"missing_wait", missing_wait},         {"sum_by_arrival", sum_by_arrival},
    {"fence_forgotten", fence_forgotten}, {"waitany_order", waitany_order}, {"to_itself", to_itself},
    {"tested_once", tested_once},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3)
        return 2;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (strcmp(argv[1], faults[i].name) == 0)
            faults[i].run(strcmp(argv[2], "good") == 0);
    MPI_Finalize();
    return 0;
}
