/* Planted deadlocks, and programs that only look like one. argv[1] says which. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

/* Each of ranks 0 and 1 receives before it sends. */
static void two_receives(void) {
    int value = rank, peer = 1 - rank;
    if (rank > 1) return;
    MPI_Recv(&value, 1, MPI_INT, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, peer, 5, MPI_COMM_WORLD);
}

/* The last rank receives where the others are in a barrier. */
static void missing_participant(void) {
    int value = 0;
    if (rank == size - 1) MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, size - 1, 7, MPI_COMM_WORLD);
}

/* Rank 0 sends with tag 7, rank 1 wants tag 8. */
static void wrong_tag(void) {
    int value = 0;
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The last rank waits for a message that nobody sends; the others are through. */
static void left_alone(void) {
    int value;
    if (rank == size - 1) MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* All send large messages round a ring before anybody receives. */
static void ring_of_sends(void) {
    static char big[1 << 20];
    MPI_Ssend(big, sizeof big, MPI_CHAR, (rank + 1) % size, 3, MPI_COMM_WORLD);
    MPI_Recv(big, sizeof big, MPI_CHAR, (rank + size - 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* In the communicator of the even ranks, one that has a name. */
static void in_a_named_communicator(void) {
    MPI_Comm half;
    int value = 0, mine;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Comm_set_name(half, rank % 2 ? "odd ranks" : "even ranks");
    MPI_Comm_rank(half, &mine);
    if (rank % 2 == 0 && mine == 1) MPI_Recv(&value, 1, MPI_INT, 0, 1, half, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, half);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 waits for three messages at once. Two of them come, a small and a large one, when it waits already; rank 2 sends none. */
static void part_of_a_halo(void) {
    static char big[1 << 20];
    int small = 0, never = 0;
    MPI_Request halo[3];
    if (rank == 0) {
        MPI_Irecv(&small, 1, MPI_INT, 1, 31, MPI_COMM_WORLD, &halo[0]);
        MPI_Irecv(big, sizeof big, MPI_CHAR, 1, 32, MPI_COMM_WORLD, &halo[1]);
        MPI_Irecv(&never, 1, MPI_INT, 2, 33, MPI_COMM_WORLD, &halo[2]);
        MPI_Waitall(3, halo, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        usleep(300000);
        MPI_Send(&small, 1, MPI_INT, 0, 31, MPI_COMM_WORLD);
        MPI_Send(big, sizeof big, MPI_CHAR, 0, 32, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* One of two threads waits in MPI, the other sleeps and then sends what the first one waits for. */
static void *late_send(void *nothing) {
    int value = 1;
    (void)nothing;
    sleep(2);
    MPI_Send(&value, 1, MPI_INT, rank, 9, MPI_COMM_WORLD);
    return NULL;
}

static void a_thread_elsewhere(void) {
    pthread_t thread;
    int value;
    pthread_create(&thread, NULL, late_send, NULL);
    MPI_Recv(&value, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_join(thread, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All threads of all ranks wait. */
static void *receive_in_vain(void *tag) {
    int value;
    MPI_Recv(&value, 1, MPI_INT, rank, *(int *)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void all_threads(void) {
    pthread_t thread;
    static int tags[2] = {21, 22};
    pthread_create(&thread, NULL, receive_in_vain, &tags[0]);
    receive_in_vain(&tags[1]);
    pthread_join(thread, NULL);
}

/* The last rank sleeps outside MPI while all others wait for it. */
static void a_sleeper(int seconds) {
    if (rank == size - 1) sleep(seconds);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The last rank computes. */
static void a_computer(void) {
    if (rank == size - 1) {
        double end = MPI_Wtime() + 2;
        volatile double x = 0;
        while (MPI_Wtime() < end) x = x * 0.5 + 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A lock on a window that a rank holds while it sleeps. */
static void a_lock_holder(void) {
    MPI_Win window;
    int memory = 0, one = 1;
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Barrier(MPI_COMM_WORLD);
        sleep(2);
        MPI_Win_unlock(0, window);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

/* Children that sleep before MPI_Init (see main) while all parents wait for them. */
static void late_children(char *program) {
    MPI_Comm children;
    char *args[] = {"child", NULL};
    MPI_Comm_spawn(program, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
}

/* A port to which nobody comes for a while. */
static void late_visitor(void) {
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm other;
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    } else if (rank == 1) {
        sleep(2);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    }
    if (rank < 2) MPI_Comm_disconnect(&other);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 waits at its port, to which nobody connects. */
static void no_visitor(void) {
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm other;
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A message to and fro: over a slow network both wait for long. */
static void slow_answer(void) {
    int value = rank;
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, size - 1, 6, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, size - 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == size - 1) MPI_Recv(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == size - 1) MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
}

/* Messages all the time, much more often than anybody looks. */
static void traffic(double seconds) {
    char *bytes = calloc(1, 1 << 17);
    double end = MPI_Wtime() + seconds;
    int go = 1;
    while (go) {
        int length = (rand() % 3) ? 64 : 1 << 17, right = (rank + 1) % size, left = (rank + size - 1) % size;
        MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Sendrecv_replace(bytes, length, MPI_CHAR, right, 1, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        go = MPI_Wtime() < end;
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    free(bytes);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int provided;
    if (!strcmp(what, "child")) sleep(2);
    MPI_Init_thread(&argc, &argv, strstr(what, "thread") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(what, "two-receives")) two_receives();
    else if (!strcmp(what, "missing")) missing_participant();
    else if (!strcmp(what, "wrong-tag")) wrong_tag();
    else if (!strcmp(what, "left-alone")) left_alone();
    else if (!strcmp(what, "ring")) ring_of_sends();
    else if (!strcmp(what, "named")) in_a_named_communicator();
    else if (!strcmp(what, "halo")) part_of_a_halo();
    else if (!strcmp(what, "threads-all")) all_threads();
    else if (!strcmp(what, "thread-elsewhere")) a_thread_elsewhere();
    else if (!strcmp(what, "sleeper")) a_sleeper(argc > 2 ? atoi(argv[2]) : 2);
    else if (!strcmp(what, "computer")) a_computer();
    else if (!strcmp(what, "lock")) a_lock_holder();
    else if (!strcmp(what, "spawn")) late_children(argv[0]);
    else if (!strcmp(what, "port")) late_visitor();
    else if (!strcmp(what, "no-visitor")) no_visitor();
    else if (!strcmp(what, "leaves")) rank == size - 1 ? exit(0) : (void)MPI_Barrier(MPI_COMM_WORLD);
    else if (!strcmp(what, "slow")) slow_answer();
    else if (!strcmp(what, "traffic")) traffic(argc > 2 ? atof(argv[2]) : 2);
    else if (!strcmp(what, "child")) {
        MPI_Comm parent;
        MPI_Comm_get_parent(&parent);
        MPI_Barrier(parent);
        MPI_Comm_disconnect(&parent);
    } else {
        if (rank == 0) fprintf(stderr, "deadlock: what is `%s`?\n", what);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    if (rank == 0) puts("done");
    return 0;
}
