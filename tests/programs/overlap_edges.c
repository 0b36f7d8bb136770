/* As overlap.c, whose second half this is: requests, in-place exchanges, datatypes with holes, and signal handlers of the program's that touch a buffer while its
   rank waits in MPI. Rank 1 is always late. Says on stderr in which parts a call of rank 0 has returned early. Arguments: parts, or none for all. */
#include "overlap.h"
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SMALL = 100, TYPES = 4096 };

static unsigned char *pages(size_t n) {
  unsigned char *at = aligned_alloc(4096, n);
  memset(at, 0, n);
  return at;
}
/* Two requests that send the same buffer, and a third one a part of it. */
static void part_onebuffer(void) {
  unsigned char *at = pages(N);
  MPI_Request requests[3];
  if (rank == 1) {
    nap(LATE_MS);
    for (int i = 0; i < 3; i++) {
      int n = i < 2 ? N : N / 2;
      memset(at, 0, N);
      MPI_Recv(at, n, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int k = 0; k < n; k++)
        if (at[k] != value(1, (size_t)k + (i == 2 ? N / 4 : 0))) fail("one of three sends of a buffer", k);
    }
  } else {
    fill(at, N, 1);
    MPI_Isend(at, N, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(at, N, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(at + N / 4, N / 2, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[2]);
    begin();
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    end();
    memset(at, 0xee, N);
  }
  free(at);
}

/* MPI_Waitall of large and small requests, in turn; the small ones lie in the pages of the large ones. */
static void part_mixed(void) {
  enum { PAIRS = 4, BOTH = N / 4 };
  MPI_Request requests[4 * PAIRS];
  unsigned char *to = pages(PAIRS * BOTH), *from = pages(PAIRS * BOTH);
  fill(from, PAIRS * BOTH, 10 + rank);
  if (rank == 1) nap(LATE_MS);
  for (int i = 0; i < PAIRS; i++) {
    int at = i * BOTH, large = BOTH - SMALL;
    MPI_Irecv(to + at, large, MPI_BYTE, 1 - rank, 2 * i, MPI_COMM_WORLD, &requests[4 * i]);
    MPI_Irecv(to + at + large, SMALL, MPI_BYTE, 1 - rank, 2 * i + 1, MPI_COMM_WORLD, &requests[4 * i + 1]);
    MPI_Isend(from + at, large, MPI_BYTE, 1 - rank, 2 * i, MPI_COMM_WORLD, &requests[4 * i + 2]);
    MPI_Isend(from + at + large, SMALL, MPI_BYTE, 1 - rank, 2 * i + 1, MPI_COMM_WORLD, &requests[4 * i + 3]);
  }
  MPI_Waitall(4 * PAIRS, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 4 * PAIRS; i++)
    if (requests[i] != MPI_REQUEST_NULL) fail("a request behind MPI_Waitall", i);
  memset(from, 0, PAIRS * BOTH);
  check(to, PAIRS * BOTH, 11 - rank, "large and small requests");
  free(to);
  free(from);
}

/* Persistent requests that are started again at once, without a touch between. */
static void part_restarted(void) {
  enum { TURNS = 4 };
  unsigned char *to = pages(N), *from = pages(N);
  MPI_Request requests[2];
  fill(from, N, 20 + rank);
  MPI_Recv_init(to, N, MPI_BYTE, 1 - rank, 20, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(from, N, MPI_BYTE, 1 - rank, 20, MPI_COMM_WORLD, &requests[1]);
  if (rank == 1) nap(LATE_MS);
  for (int turn = 0; turn < TURNS; turn++) {
    MPI_Startall(2, requests);
    if (turn == 0) begin();
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (turn == 0 && rank == 0) end();
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  memset(from, 0, N);
  check(to, N, 21 - rank, "by requests that were started again at once");
  free(to);
  free(from);
}

/* What is sent is what is received into. */
static void part_replace(void) {
  unsigned char *at = pages(N);
  for (int turn = 0; turn < 2; turn++) {
    fill(at, N, 30 + rank + 2 * turn);
    if (rank == 1) nap(LATE_MS);
    MPI_Sendrecv_replace(at, N, MPI_BYTE, 1 - rank, 30, 1 - rank, 30, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(at, N, 31 - rank + 2 * turn, "replaced");
  }
  free(at);
}

/* Collectives that work in their receive buffer. */
static void part_inplace(void) {
  unsigned char *at = pages(2 * N);
  for (int root = 0; root < 2; root++) {
    void *own = at + rank * N;
    fill(own, N, 40 + rank + root);
    if (rank == 1) nap(LATE_MS);
    MPI_Gather(rank == root ? MPI_IN_PLACE : own, N, MPI_BYTE, at, N, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < 2; i++) check(at + i * N, N, 40 + i + root, "gathered in place");
    for (int i = 0; i < 2; i++) fill(at + i * N, N, 50 + i + root);
    if (rank != root) memset(own, 0, N);
    if (rank == 1) nap(LATE_MS);
    MPI_Scatter(at, N, MPI_BYTE, rank == root ? MPI_IN_PLACE : own, N, MPI_BYTE, root, MPI_COMM_WORLD);
    check(own, N, 50 + rank + root, "scattered in place");
    memset(at, 1 + rank, 2 * N);
    if (rank == 1) nap(LATE_MS);
    MPI_Allreduce(MPI_IN_PLACE, at, 2 * N, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    MPI_Reduce(rank == root ? MPI_IN_PLACE : at, at, N, MPI_BYTE, MPI_BXOR, root, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * N; i++)
      if (at[i] != (i < N && rank == root ? 0 : 3)) fail("reduced in place", i);
    int counts[2] = {N, N / 2}, places[2] = {0, N};
    fill(own, (size_t)counts[rank], 60 + rank);
    if (rank == 1) nap(LATE_MS);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, at, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) check(at + i * N, (size_t)counts[i], 60 + i, "gathered in place by all");
  }
  free(at);
}

/* Elements with holes, in which others' data stays: blocks of a vector, and elements that are dense but for what lies behind each. */
static void part_holes(void) {
  enum { BLOCK = 192, STRIDE = 256 };
  MPI_Datatype vector, padded, dense;
  MPI_Type_vector(TYPES, BLOCK, STRIDE, MPI_BYTE, &vector);
  MPI_Type_contiguous(BLOCK, MPI_BYTE, &dense);
  MPI_Type_create_resized(dense, 0, STRIDE, &padded);
  MPI_Type_commit(&vector);
  MPI_Type_commit(&padded);
  unsigned char *to = pages(TYPES * STRIDE), *from = pages(TYPES * STRIDE);
  for (int turn = 0; turn < 2; turn++) {
    MPI_Datatype type = turn == 0 ? vector : padded;
    int count = turn == 0 ? 1 : TYPES;
    memset(to, 0x5a, TYPES * STRIDE);
    fill(from, TYPES * STRIDE, 70 + rank + turn);
    if (rank == 1) {
      nap(LATE_MS);
      MPI_Send(from, count, type, 0, 70, MPI_COMM_WORLD);
      nap(LATE_MS);
      MPI_Recv(to, count, type, 0, 71, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(to, count, type, 1, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      to[BLOCK + 1] = 0x5a;
      MPI_Send(from, count, type, 1, 71, MPI_COMM_WORLD);
      from[BLOCK + 1]++;
      memset(from, 0, TYPES * STRIDE);
    }
    for (int i = 0; i < TYPES * STRIDE; i++)
      if (to[i] != (i % STRIDE < BLOCK ? value(71 - rank + turn, (size_t)i) : 0x5a)) fail("elements with holes", i);
  }
  MPI_Type_free(&vector);
  MPI_Type_free(&padded);
  MPI_Type_free(&dense);
  free(to);
  free(from);
}

/* A handler of the program's touches the buffer of a call that has returned: by instructions, and by the kernel. */
static unsigned char *watched;
static int watched_seed, ends[2];
static volatile sig_atomic_t fired, wrong;
static double fired_ms;
static void touches(int signal) {
  (void)signal;
  int before = errno;
  fired_ms = since_ms();
  if (write(ends[1], watched + 5000, SMALL) != SMALL) wrong = 1;
  for (size_t i = 0; i < N; i++)
    if (watched[i] != value(watched_seed, i)) wrong = 2;
  fired++;
  errno = before;
}
static void alarm_in_ms(int ms) {
  struct itimerval once = {{0, 0}, {0, ms * 1000}};
  setitimer(ITIMER_REAL, &once, NULL);
}
static void handles(int seed) {
  struct sigaction own;
  memset(&own, 0, sizeof own);
  own.sa_handler = touches;
  own.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &own, NULL);
  if (pipe(ends) != 0) fail("pipe", errno);
  watched = pages(N);
  watched_seed = seed;
  fired = wrong = 0;
}
static void handled(int seed, const char *what) {
  unsigned char text[SMALL];
  while (fired == 0) nap(1);
  if (fired != 1 || wrong != 0) fail(what, wrong);
  if (read(ends[0], text, SMALL) != SMALL) fail("the pipe of a handler", errno);
  for (int i = 0; i < SMALL; i++)
    if (text[i] != value(seed, (size_t)i + 5000)) fail("what a handler has written", i);
  signal(SIGALRM, SIG_DFL);
  close(ends[0]);
  close(ends[1]);
  free(watched);
}
/* While its rank waits in MPI for another message. */
static void part_alarmed(void) {
  int word = 0;
  if (rank == 1) {
    late_send(N, 80, 80);
    nap(LATE_MS);
    word = 5;
    MPI_Send(&word, 1, MPI_INT, 0, 81, MPI_COMM_WORLD);
    return;
  }
  handles(80);
  receive(watched, N, 80);
  alarm_in_ms(100);
  MPI_Recv(&word, 1, MPI_INT, 1, 81, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (word != 5 || fired != 1) fail("the wait that a handler came into", fired);
  handled(80, "a handler while its rank waits in MPI");
}
/* While its rank waits for what it has touched itself: the handler does not wait for that first. */
static void part_alarmedtouch(void) {
  if (rank == 1) return late_send(N, 82, 82);
  handles(82);
  receive(watched, N, 82);
  alarm_in_ms(50);
  if (watched[7] != value(82, 7)) fail("a touch that a handler came into", watched[7]);
  int was_early = early > 0;
  handled(82, "a handler while its rank waits for what it touches");
  if (was_early && fired_ms > LATE_MS - 50) fail("the handler came when the message had come, ms", (long)fired_ms);
}
/* While its rank waits for all that it has left behind, which is the message that the handler touches. */
static void part_alarmedwait(void) {
  if (rank == 1) {
    late_send(N, 83, 83);
    MPI_Barrier(MPI_COMM_WORLD);
    return;
  }
  handles(83);
  receive(watched, N, 83);
  alarm_in_ms(50);
  MPI_Barrier(MPI_COMM_WORLD);
  handled(83, "a handler while its rank waits for what it has left behind");
}
/* A sender's, while that waits: reading does not, writing does. */
static void writes_there(int signal) {
  (void)signal;
  if (watched[9] != value(watched_seed, 9)) wrong = 3;
  watched[9] = 99;
  fired++;
}
static void part_alarmedsend(void) {
  int word = 0;
  unsigned char *to = pages(N);
  if (rank == 1) {
    nap(LATE_MS);
    MPI_Recv(to, N, MPI_BYTE, 0, 84, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(to, N, 84, "sent, and written to by a handler behind that");
    nap(LATE_MS);
    MPI_Send(&word, 1, MPI_INT, 0, 85, MPI_COMM_WORLD);
  } else {
    handles(84);
    signal(SIGALRM, writes_there);
    fill(watched, N, 84);
    begin();
    MPI_Send(watched, N, MPI_BYTE, 1, 84, MPI_COMM_WORLD);
    end();
    alarm_in_ms(100);
    MPI_Recv(&word, 1, MPI_INT, 1, 85, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (fired != 1 || wrong != 0 || watched[9] != 99) fail("a handler that writes to what is sent", wrong);
    signal(SIGALRM, SIG_DFL);
    close(ends[0]);
    close(ends[1]);
    free(watched);
  }
  free(to);
}

static const struct {
  const char *name;
  void (*run)(void);
} PARTS[] = {
    {"onebuffer", part_onebuffer}, {"mixed", part_mixed},     {"restarted", part_restarted},
    {"replace", part_replace},     {"inplace", part_inplace}, {"holes", part_holes},
    {"alarmed", part_alarmed},     {"alarmedtouch", part_alarmedtouch},
    {"alarmedwait", part_alarmedwait}, {"alarmedsend", part_alarmedsend},
};

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (size_t part = 0; part < sizeof PARTS / sizeof *PARTS; part++) {
    int wanted = argc == 1;
    for (int i = 1; i < argc; i++) wanted |= strcmp(argv[i], PARTS[part].name) == 0;
    if (!wanted) continue;
    early = 0;
    PARTS[part].run();
    int was_early = early;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && was_early > 0) fprintf(stderr, "early: %s %d\n", PARTS[part].name, was_early);
  }
  MPI_Finalize();
  if (rank == 0) puts("all is right");
  return 0;
}
