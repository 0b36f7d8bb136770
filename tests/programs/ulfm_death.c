/* What survivors see when a rank dies by kill -9: argv[1] is the story, the last rank (or the last two) is the victim. Every survivor
 * prints one line when it has seen what it must, and then ends as usual. */
#include "ulfm.h"
#include <sys/time.h>

static int rank, size, victim;
static MPI_Comm world;

/* The survivors go on: revoke, shrink, compute. */
static void go_on(MPI_Comm comm, int dead)
{
    MPI_Comm left;
    int n, sum, flag = rank == 0 ? 6 : 7;
    EXPECT(MPIX_Comm_revoke(comm), MPI_SUCCESS);
    EXPECT(MPI_Barrier(comm), MPIX_ERR_REVOKED);
    EXPECT(MPIX_Comm_shrink(comm, &left), MPI_SUCCESS);
    MPI_Comm_size(left, &n);
    CHECK(n == size - dead);
    EXPECT(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, left), MPI_SUCCESS);
    CHECK(sum == (size - dead) * (size - dead - 1) / 2);
    EXPECT(MPIX_Comm_agree(left, &flag), MPI_SUCCESS);
    CHECK(flag == (size - dead > 0 ? 6 : 7));
    EXPECT(MPI_Comm_free(&left), MPI_SUCCESS);
}

static void receive(void)
{
    int value = -1, first = -1;
    if (rank == victim) {
        value = 42;
        for (int to = 0; to < size - 1; to++)
            MPI_Send(&value, 1, MPI_INT, to, 1, world);
        die();
    }
    /* What was sent before the death arrives; nothing more. */
    EXPECT(MPI_Recv(&value, 1, MPI_INT, victim, 2, world, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Recv(&first, 1, MPI_INT, victim, 1, world, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK(first == 42);
    EXPECT(MPI_Send(&value, 1, MPI_INT, victim, 3, world), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Ssend(&value, 1, MPI_INT, victim, 3, world), MPIX_ERR_PROC_FAILED);
    MPI_Request request;
    EXPECT(MPI_Irecv(&value, 1, MPI_INT, victim, 4, world, &request), MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    CHECK(request == MPI_REQUEST_NULL);
    MPI_Status status;
    EXPECT(MPI_Probe(victim, 9, world, &status), MPIX_ERR_PROC_FAILED);
    /* Point-to-point among the living goes on without anybody's doing. */
    int next = (rank + 1) % (size - 1), last = (rank + size - 2) % (size - 1), got = -1;
    EXPECT(MPI_Sendrecv(&rank, 1, MPI_INT, next, 5, &got, 1, MPI_INT, last, 5, world, &status), MPI_SUCCESS);
    CHECK(got == last);
}

static void barrier(void)
{
    if (rank == victim)
        die();
    EXPECT(MPI_Barrier(world), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Barrier(world), MPIX_ERR_PROC_FAILED);
    MPI_Comm comm;
    EXPECT(MPI_Comm_dup(world, &comm), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Comm_split(world, 0, rank, &comm), MPIX_ERR_PROC_FAILED);
}

/* Long messages: the victim is in the middle of the tree, and dies having taken part for a while. */
static void allreduce(int bytes)
{
    int count = bytes / 8, code = MPI_SUCCESS;
    double *in = malloc(bytes), *out = malloc(bytes);
    victim = size / 2;
    for (int round = 0; code == MPI_SUCCESS && round < 1000; round++) {
        for (int i = 0; i < count; i++)
            in[i] = round + rank;
        if (rank == victim && round == 5)
            die();
        code = MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, world);
        if (code == MPI_SUCCESS)
            for (int i = 0; i < count; i++)
                CHECK(out[i] == (double)round * size + size * (size - 1) / 2);
        else
            CHECK(round <= 5);
    }
    EXPECT(code, MPIX_ERR_PROC_FAILED);
    free(in);
    free(out);
}

static void bcast(int bytes)
{
    int count = bytes / 4, code = MPI_SUCCESS;
    int *data = malloc(bytes);
    victim = size / 2;
    for (int round = 0; code == MPI_SUCCESS && round < 10000; round++) {
        int root = round % size;
        for (int i = 0; i < count; i++)
            data[i] = rank == root ? round : -1;
        if (rank == victim && round == 2 * size)
            die();
        code = MPI_Bcast(data, count, MPI_INT, root, world);
        if (code == MPI_SUCCESS)
            for (int i = 0; i < count; i++)
                CHECK(data[i] == round);
    }
    EXPECT(code, MPIX_ERR_PROC_FAILED);
    /* Others may wait in a broadcast that this rank was through with. */
    EXPECT(MPI_Barrier(world), MPIX_ERR_PROC_FAILED);
    free(data);
}

/* What has been given up is the program's again: nothing more is written there, whoever goes on sending. */
static void kept(int bytes)
{
    char *data = malloc(bytes);
    victim = size / 2;
    memset(data, rank, bytes);
    if (rank == victim) {
        usleep(30000);
        die();
    }
    int code = MPI_Bcast(data, bytes, MPI_CHAR, 0, world);
    if (code == MPI_SUCCESS)
        for (int i = 0; i < bytes; i++)
            CHECK(data[i] == 0);
    else
        EXPECT(code, MPIX_ERR_PROC_FAILED);
    memset(data, 'k', bytes);
    for (int look = 0; look < 60; look++) {
        usleep(5000);
        for (int i = 0; i < bytes; i++)
            CHECK(data[i] == 'k');
    }
    EXPECT(MPI_Barrier(world), MPIX_ERR_PROC_FAILED);
    free(data);
}

static void wildcard(void)
{
    int value = -1, flag;
    MPI_Status status;
    MPI_Request request;
    if (rank == victim)
        die();
    EXPECT(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 11, world, &status), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Probe(MPI_ANY_SOURCE, 11, world, &status), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, world, &request), MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, &status), MPIX_ERR_PROC_FAILED_PENDING);
    CHECK(request != MPI_REQUEST_NULL);
    EXPECT(MPI_Test(&request, &flag, &status), MPIX_ERR_PROC_FAILED_PENDING);
    MPI_Group failed, all;
    int n, one = 0, in_world = -1;
    EXPECT(MPIX_Comm_failure_get_acked(world, &failed), MPI_SUCCESS);
    MPI_Group_size(failed, &n);
    CHECK(n == 0);
    MPI_Group_free(&failed);
    EXPECT(MPIX_Comm_failure_ack(world), MPI_SUCCESS);
    EXPECT(MPIX_Comm_failure_get_acked(world, &failed), MPI_SUCCESS);
    MPI_Group_size(failed, &n);
    CHECK(n == 1);
    MPI_Comm_group(world, &all);
    MPI_Group_translate_ranks(failed, 1, &one, all, &in_world);
    CHECK(in_world == victim);
    MPI_Group_free(&failed);
    MPI_Group_free(&all);
    /* The request goes on. (Nobody sends before all have seen that theirs was in doubt.) */
    MPIX_Comm_agree(world, &n);
    int next = (rank + 1) % (size - 1), last = (rank + size - 2) % (size - 1);
    EXPECT(MPI_Send(&rank, 1, MPI_INT, next, 1, world), MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, &status), MPI_SUCCESS);
    CHECK(value == last && status.MPI_SOURCE == last);
}

/* The victim dies with a lock on rank 0's memory. */
static void lock(void)
{
    MPI_Win win;
    int *memory, one = 1, code;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, world, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    *memory = 0;
    MPI_Barrier(world);
    if (rank == victim) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        for (int to = 0; to < size - 1; to++)
            MPI_Send(&one, 1, MPI_INT, to, 1, world);
        die();
    }
    MPI_Recv(&one, 1, MPI_INT, victim, 1, world, MPI_STATUS_IGNORE);
    EXPECT(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Win_fence(0, win), MPIX_ERR_PROC_FAILED);
    code = MPI_Win_lock(MPI_LOCK_SHARED, victim, 0, win);
    EXPECT(code, MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Win_free(&win), MPI_SUCCESS);
}

static void agree(void)
{
    int flag = 0xff & ~(1 << rank);
    if (rank == victim)
        die();
    EXPECT(MPIX_Comm_agree(world, &flag), MPIX_ERR_PROC_FAILED);
    int expected = 0xff;
    for (int i = 0; i < size - 1; i++)
        expected &= ~(1 << i);
    CHECK(flag == expected);
    /* Acknowledged by all: no error any more. */
    EXPECT(MPIX_Comm_failure_ack(world), MPI_SUCCESS);
    flag = 5;
    EXPECT(MPIX_Comm_agree(world, &flag), MPI_SUCCESS);
    CHECK(flag == 5);
    /* By all but one: everybody hears of it. (Those acknowledged above stay so; a new communicator begins anew.) */
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPIX_Comm_iagree) {
        flag = rank == 0 ? 3 : 9;
        EXPECT(MPIX_Comm_iagree(world, &flag, &request), MPI_SUCCESS);
        EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
        CHECK(flag == (size > 2 ? 1 : 3));
    }
}

/* Deaths while others agree and shrink. */
static void during(void)
{
    MPI_Comm left;
    int flag = rank;
    if (rank == victim) {
        usleep(2000);
        die();
    }
    if (rank == victim - 1) {
        usleep(4000);
        die();
    }
    int code = MPIX_Comm_agree(world, &flag);
    EXPECT(code, MPIX_ERR_PROC_FAILED);
    EXPECT(MPIX_Comm_shrink(world, &left), MPI_SUCCESS);
    int n;
    MPI_Comm_size(left, &n);
    CHECK(n == size - 2);
    MPI_Comm_free(&left);
}

/* The victim computes with others on its core; they must get it. */
static void running(void)
{
    int value = 0;
    if (rank == victim) {
        MPI_Send(&value, 1, MPI_INT, 0, 1, world);
        for (volatile long i = 0; i < 20000000; i++)
            ;
        die();
    }
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, victim, 1, world, MPI_STATUS_IGNORE);
    EXPECT(MPI_Recv(&value, 1, MPI_INT, victim, 2, world, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
}

/* Requests of several kinds, and a wait for all of them. */
static void requests(void)
{
    enum { LONG = 1 << 20 };
    static char buffer[3][LONG];
    MPI_Request request[3];
    MPI_Status status[3];
    if (rank == victim) {
        usleep(1000);
        die();
    }
    int next = (rank + 1) % (size - 1), last = (rank + size - 2) % (size - 1);
    MPI_Irecv(buffer[0], LONG, MPI_CHAR, victim, 1, world, &request[0]);
    MPI_Isend(buffer[1], LONG, MPI_CHAR, victim, 1, world, &request[1]);
    MPI_Irecv(buffer[2], LONG, MPI_CHAR, last, 7, world, &request[2]);
    /* Only what cannot complete ends the wait. */
    EXPECT(MPI_Waitall(3, request, status), MPI_ERR_IN_STATUS);
    for (int i = 0; i < 2; i++) {
        int class = class_of(status[i].MPI_ERROR);
        CHECK(class == MPIX_ERR_PROC_FAILED || class == MPI_ERR_PENDING);
        if (request[i] != MPI_REQUEST_NULL)
            EXPECT(MPI_Wait(&request[i], &status[i]), MPIX_ERR_PROC_FAILED);
    }
    static char out[LONG];
    MPI_Request sent;
    memset(out, 'a' + rank, LONG);
    MPI_Isend(out, LONG, MPI_CHAR, next, 7, world, &sent);
    EXPECT(MPI_Wait(&request[2], MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT(MPI_Wait(&sent, MPI_STATUS_IGNORE), MPI_SUCCESS);
    for (int i = 0; i < LONG; i++)
        CHECK(buffer[2][i] == 'a' + last);
}

static void suddenly(int signal)
{
    (void)signal;
    kill(getpid(), SIGKILL);
}

/* The victim dies at any moment of busy communication, also in the middle of vmpi's own steps. */
static void storm(int microseconds, int bytes)
{
    char *out = malloc(bytes), *in = malloc(bytes);
    int code = MPI_SUCCESS, next = (rank + 1) % size, last = (rank + size - 1) % size;
    if (rank == victim) {
        struct itimerval when = {{0, 0}, {0, microseconds}};
        signal(SIGALRM, suddenly);
        setitimer(ITIMER_REAL, &when, NULL);
    }
    for (int round = 0; code == MPI_SUCCESS; round++) {
        memset(out, round + rank, bytes);
        code = MPI_Sendrecv(out, bytes, MPI_CHAR, next, 1, in, bytes, MPI_CHAR, last, 1, world, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS)
            for (int i = 0; i < bytes; i++)
                CHECK(in[i] == (char)(round + last));
        int sum = 0, one = 1;
        if (code == MPI_SUCCESS && round % 8 == 0)
            code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, world);
        if (code == MPI_SUCCESS && round % 8 == 0)
            CHECK(sum == size);
    }
    int class = class_of(code);
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
    /* The neighbours may wait for this rank, which lives. */
    EXPECT(MPIX_Comm_revoke(world), MPI_SUCCESS);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    const char *story = argc > 1 ? argv[1] : "receive";
    int dead = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Barrier(world);
    victim = size - 1;
    if (!strcmp(story, "receive"))
        receive();
    else if (!strcmp(story, "barrier"))
        barrier();
    else if (!strcmp(story, "allreduce"))
        allreduce(1 << 20);
    else if (!strcmp(story, "allreduce-short"))
        allreduce(64);
    else if (!strcmp(story, "bcast"))
        bcast(1 << 20);
    else if (!strcmp(story, "bcast-short"))
        bcast(256);
    else if (!strcmp(story, "kept"))
        kept(argc > 2 ? atoi(argv[2]) : 1 << 22);
    else if (!strcmp(story, "wildcard"))
        wildcard();
    else if (!strcmp(story, "lock"))
        lock();
    else if (!strcmp(story, "agree"))
        agree();
    else if (!strcmp(story, "during")) {
        during();
        dead = 2;
    } else if (!strcmp(story, "running"))
        running();
    else if (!strcmp(story, "requests"))
        requests();
    else if (!strcmp(story, "storm"))
        storm(argc > 2 ? atoi(argv[2]) : 3000, argc > 3 ? atoi(argv[3]) : 32);
    else
        CHECK(!"a story");
    int all = 1;
    /* Nobody revokes before all have seen what they must. */
    MPIX_Comm_agree(world, &all);
    if (victim == size - 1)
        go_on(world, dead);
    EXPECT(MPI_Comm_free(&world), MPI_SUCCESS);
    printf("survivor %d saw %s\n", rank, story);
    fflush(stdout);
    EXPECT(MPI_Finalize(), MPI_SUCCESS);
    return 0;
}
