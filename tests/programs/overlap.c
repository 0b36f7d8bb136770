/* What programs do with buffers of blocking calls that have returned before their message was over (vmpirun --overlap): the answers are those of a call that
   waits. Rank 1 is always late. Says on stderr in which parts a call of rank 0 has returned early. Arguments: parts, or none for all that end well. */
#define _GNU_SOURCE
#include "overlap.h"
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int size;
static MPI_Comm pair; /* ranks 0 and 1 */

static void late_receive(int n, int seed, int tag, const char *what) {
  unsigned char *to = malloc((size_t)n);
  nap(LATE_MS);
  MPI_Recv(to, n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(to, (size_t)n, seed, what);
  free(to);
}

/* The first touch reads. */
static void part_read(void) {
  if (rank == 1) return late_send(N, 1, 1);
  unsigned char *to = calloc(N, 1);
  receive(to, N, 1);
  check(to, N, 1, "read");
  free(to);
}
/* The first touch writes: behind MPI_Recv the message is there, so what is written now stays. */
static void part_write(void) {
  if (rank == 1) return late_send(N, 2, 2);
  unsigned char *to = calloc(N, 1);
  receive(to, N, 2);
  to[N / 2] = 99;
  if (to[N / 2] != 99) fail("what was written has been overwritten", to[N / 2]);
  to[N / 2] = value(2, N / 2);
  check(to, N, 2, "beside what was written");
  free(to);
}
/* A send buffer may be read meanwhile; writing waits. */
static void part_send(void) {
  if (rank == 1) return late_receive(N, 3, 3, "sent");
  unsigned char *from = malloc(N);
  fill(from, N, 3);
  begin();
  MPI_Send(from, N, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
  check(from, N, 3, "send buffer");
  end();
  memset(from, 0xee, N);
  free(from);
}
/* The same buffer is sent twice. */
static void part_twice(void) {
  if (rank == 1) {
    late_receive(N, 4, 4, "first of two");
    return late_receive(N, 4, 5, "second of two");
  }
  unsigned char *from = malloc(N);
  fill(from, N, 4);
  begin();
  MPI_Send(from, N, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
  MPI_Send(from, N, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
  end();
  memset(from, 0, N);
  free(from);
}
/* The kernel is to write into it. */
static void part_sysread(void) {
  if (rank == 1) return late_send(N, 6, 6);
  int ends[2];
  unsigned char text[1000], *to = calloc(N, 1);
  memset(text, 'x', sizeof text);
  if (pipe(ends) != 0 || write(ends[1], text, sizeof text) != sizeof text) fail("pipe", errno);
  receive(to, N, 6);
  ssize_t got = read(ends[0], to + 5000, sizeof text);
  if (got != sizeof text) fail("read(2) into a receive buffer", got < 0 ? errno : got);
  if (memcmp(to + 5000, text, sizeof text) != 0) fail("what was read has been overwritten", 0);
  fill(to + 5000, 0, 0);
  for (size_t i = 0; i < N; i++)
    if ((i < 5000 || i >= 6000) && to[i] != value(6, i)) fail("beside what was read", (long)i);
  close(ends[0]);
  close(ends[1]);
  free(to);
}
/* The kernel is to read it: write(2), and stdio. */
static void part_syswrite(void) {
  if (rank == 1) {
    late_send(N, 7, 7);
    return late_send(N, 8, 8);
  }
  unsigned char *to = calloc(N, 1), *back = malloc(N);
  FILE *file = tmpfile();
  receive(to, N, 7);
  ssize_t put = write(fileno(file), to, N);
  if (put != N || pread(fileno(file), back, N, 0) != N) fail("write(2) out of a receive buffer", put < 0 ? errno : put);
  check(back, N, 7, "written");
  free(to);
  to = calloc(N, 1);
  receive(to, N, 8);
  rewind(file);
  if (fwrite(to, 1, N, file) != N || fflush(file) != 0 || pread(fileno(file), back, N, 0) != N) fail("fwrite", errno);
  check(back, N, 8, "written by stdio");
  fclose(file);
  free(to);
  free(back);
}
/* A child is made in between: both have the message. */
static void part_fork(void) {
  if (rank == 1) return late_send(N, 9, 9);
  unsigned char *to = calloc(N, 1);
  receive(to, N, 9);
  pid_t child = fork();
  if (child == 0) {
    for (size_t i = 0; i < N; i++)
      if (to[i] != value(9, i)) _exit(1);
    _exit(0);
  }
  int status = -1;
  if (waitpid(child, &status, 0) != child || status != 0) fail("the child of a fork", status);
  check(to, N, 9, "behind a fork");
  if (system("exit 3") >> 8 != 3) fail("system", errno);
  free(to);
}
/* Freed, and malloc gives the same memory out again: blocks of their own mappings, and of the heap. */
static void part_free(void) {
  static const int sizes[] = {4 << 20, 100 << 10};
  for (int turn = 0; turn < 4; turn++) {
    int n = sizes[turn / 2], seed = 10 + turn;
    if (rank == 1) {
      if (turn % 2 == 0) late_send(n, seed, 10); else late_receive(n, seed, 10, "freed while it was sent");
    } else {
      unsigned char *before = malloc(300), *block = malloc((size_t)n), *behind = malloc(300);
      memset(before, 1, 300);
      memset(behind, 2, 300);
      fill(block, (size_t)n, seed);
      if (turn % 2 == 0) receive(block, n, 10);
      else {
        begin();
        MPI_Send(block, n, MPI_BYTE, 1, 10, MPI_COMM_WORLD);
        end();
      }
      free(block);
      free(before);
      unsigned char *again = malloc((size_t)n);
      memset(again, 0x77, (size_t)n);
      for (int i = 0; i < 300; i++)
        if (behind[i] != 2) fail("the neighbour of a freed block", i);
      free(behind);
      MPI_Barrier(MPI_COMM_SELF);
      for (int i = 0; i < n; i++)
        if (again[i] != 0x77) fail("memory that was freed and given out again", i);
      free(again);
    }
  }
}
static void part_realloc(void) {
  if (rank == 1) return late_send(N, 14, 14);
  unsigned char *to = malloc(N);
  receive(to, N, 14);
  to = realloc(to, 8 * (size_t)N);
  check(to, N, 14, "behind realloc");
  free(to);
}
/* Another thread touches it. */
static unsigned char *shared;
static void *reads(void *none) {
  (void)none;
  check(shared, N, 15, "read by a thread");
  return NULL;
}
static void part_thread(void) {
  if (rank == 1) return late_send(N, 15, 15);
  pthread_t thread;
  shared = calloc(N, 1);
  receive(shared, N, 15);
  if (pthread_create(&thread, NULL, reads, NULL) != 0) fail("pthread_create", errno);
  check(shared, N, 15, "read beside a thread");
  pthread_join(thread, NULL);
  free(shared);
}
/* The program has a handler for SIGSEGV of its own, which opens a page of its own. */
static unsigned char *trap;
static volatile sig_atomic_t trapped;
static void opens(int signal, siginfo_t *info, void *context) {
  (void)context;
  if ((unsigned char *)info->si_addr < trap || (unsigned char *)info->si_addr >= trap + 4096) _exit(70 + signal);
  trapped++;
  mprotect(trap, 4096, PROT_READ | PROT_WRITE);
}
static void part_handler(void) {
  if (rank == 1) {
    late_send(N, 16, 16);
    return late_send(N, 17, 17);
  }
  struct sigaction own = {.sa_sigaction = opens, .sa_flags = SA_SIGINFO}, before, now;
  unsigned char *to = calloc(N, 1);
  trap = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaction(SIGSEGV, &own, &before);
  receive(to, N, 16);
  trap[7] = 1;
  if (trapped != 1) fail("the program's own handler", trapped);
  check(to, N, 16, "beside a handler");
  mprotect(trap, 4096, PROT_NONE);
  free(to);
  to = calloc(N, 1);
  receive(to, N, 17);
  check(to, N, 17, "behind a handler");
  trap[8] = 1;
  if (trapped != 2) fail("the program's own handler again", trapped);
  sigaction(SIGSEGV, &before, &now);
  if (now.sa_sigaction != opens) fail("sigaction does not tell the program's own handler", 0);
  munmap(trap, 4096);
  free(to);
}
/* On the stack. */
static void part_stack(void) {
  if (rank == 1) return late_send(200000, 18, 18);
  unsigned char to[200000];
  memset(to, 0, sizeof to);
  MPI_Recv(to, sizeof to, MPI_BYTE, 1, 18, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(to, sizeof to, 18, "on the stack");
}
/* Two buffers, and other variables, in one page. */
static struct {
  char before[100];
  unsigned char one[100000];
  int between;
  unsigned char two[100000];
  int behind;
} packed __attribute__((aligned(4096)));
static void part_page(void) {
  if (rank == 1) {
    late_send(sizeof packed.one, 19, 19);
    late_send(sizeof packed.two, 20, 20);
    return late_receive(sizeof packed.two, 21, 21, "sent beside a receive");
  }
  MPI_Request request;
  int word = 0;
  packed.between = 5;
  receive(packed.one, sizeof packed.one, 19);
  receive(packed.two, sizeof packed.two, 20);
  if (packed.between != 5) fail("between two buffers", packed.between);
  packed.behind = 6;
  check(packed.two, sizeof packed.two, 20, "second in a page");
  check(packed.one, sizeof packed.one, 19, "first in a page");
  MPI_Irecv(&packed.between, 1, MPI_INT, 0, 22, MPI_COMM_WORLD, &request);
  fill(packed.two, sizeof packed.two, 21);
  MPI_Send(packed.two, sizeof packed.two, MPI_BYTE, 1, 21, MPI_COMM_WORLD);
  word = 7;
  MPI_Send(&word, 1, MPI_INT, 0, 22, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (packed.between != 7 || packed.behind != 6) fail("a small message beside a large one", packed.between);
}
/* Shorter than posted, and much shorter: the rest keeps its contents. */
static void part_short(void) {
  if (rank == 1) {
    late_send(N / 2 + 11, 23, 23);
    return late_send(100, 24, 24);
  }
  for (int turn = 0; turn < 2; turn++) {
    unsigned char *to = malloc(N);
    int n = turn == 0 ? N / 2 + 11 : 100;
    memset(to, 0x55, N);
    receive(to, N, 23 + turn);
    for (int i = N - 1; i >= n; i--)
      if (to[i] != 0x55) fail("behind a short message", i);
    check(to, (size_t)n, 23 + turn, "a short message");
    free(to);
  }
}
/* From anybody, with a status. */
static void part_any(void) {
  if (rank == 1) return late_send(N, 25, 25);
  MPI_Status status;
  int count = 0;
  unsigned char *to = calloc(2 * N, 1);
  MPI_Recv(to, 2 * N, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  if (status.MPI_SOURCE != 1 || status.MPI_TAG != 25 || count != N) fail("status", count);
  check(to, N, 25, "from anybody");
  free(to);
}
/* Requests. */
static void part_wait(void) {
  if (rank == 1) {
    unsigned char *to = malloc(N);
    nap(LATE_MS);
    MPI_Recv(to, N, MPI_BYTE, 0, 27, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(to, N, 27, "by MPI_Isend");
    fill(to, N, 26);
    MPI_Send(to, N, MPI_BYTE, 0, 26, MPI_COMM_WORLD);
    nap(LATE_MS);
    MPI_Recv(to, N, MPI_BYTE, 0, 28, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(to, N, 28, "by MPI_Isend, alone");
    free(to);
    return;
  }
  MPI_Request requests[2];
  unsigned char *to = aligned_alloc(4096, N), *from = aligned_alloc(4096, N);
  memset(to, 0, N);
  fill(from, N, 27);
  MPI_Irecv(to, N, MPI_BYTE, 1, 26, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(from, N, MPI_BYTE, 1, 27, MPI_COMM_WORLD, &requests[1]);
  begin();
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  end();
  if (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL) fail("requests behind MPI_Waitall", 0);
  memset(from, 0, N);
  check(to, N, 26, "by MPI_Irecv");
  fill(from, N, 28);
  MPI_Isend(from, N, MPI_BYTE, 1, 28, MPI_COMM_WORLD, &requests[0]);
  begin();
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  end();
  memset(from, 0, N);
  free(from);
  free(to);
}
static void part_sendrecv(void) {
  /* Halves that share a page are not both left behind. */
  unsigned char *to = aligned_alloc(4096, N), *from = aligned_alloc(4096, N);
  memset(to, 0, N);
  fill(from, N, 29 + rank);
  if (rank == 1) nap(LATE_MS);
  begin();
  MPI_Sendrecv(from, N, MPI_BYTE, 1 - rank, 29, to, N, MPI_BYTE, 1 - rank, 29, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) end();
  memset(from, 0, N);
  check(to, N, 30 - rank, "exchanged");
  free(from);
  free(to);
}
/* What is sent lies in pages of what is received, and messages that come with their data share pages with others that have not come. */
static void part_beside(void) {
  static const int sizes[] = {N + 1, 40001};
  for (int turn = 0; turn < 2; turn++) {
    int n = sizes[turn];
    unsigned char *both = malloc(2 * (size_t)n), *blocks = calloc(4, (size_t)n);
    fill(both, (size_t)n, 100 + rank);
    if (rank == 1) nap(LATE_MS);
    MPI_Sendrecv(both, n, MPI_BYTE, 1 - rank, 45, both + n, n, MPI_BYTE, 1 - rank, 45, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(both, (size_t)n, 100 + rank, "sent beside what is received");
    check(both + n, (size_t)n, 101 - rank, "received beside what is sent");
    for (int i = 0; i < 4; i++)
      if (rank == 1) {
        fill(both, (size_t)n, 110 + i);
        MPI_Send(both, n, MPI_BYTE, 0, 46, MPI_COMM_WORLD);
        if (i == 1) nap(LATE_MS);
      } else {
        if (i == 0) nap(LATE_MS / 3);
        MPI_Recv(blocks + i * n, n, MPI_BYTE, 1, 46, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    for (int i = 0; rank == 0 && i < 4; i++) check(blocks + i * n, (size_t)n, 110 + i, "one of four blocks");
    free(both);
    free(blocks);
  }
  /* Some of the blocks of a collective are here, the others not. */
  for (int turn = 0; turn < 2; turn++) {
    int n = sizes[turn];
    unsigned char *from = malloc((size_t)n), *to = calloc(2, (size_t)n);
    fill(from, (size_t)n, 120 + rank);
    if (rank == turn) nap(LATE_MS);
    MPI_Allgather(from, n, MPI_BYTE, to, n, MPI_BYTE, pair);
    for (int i = 0; i < 2; i++) check(to + i * n, (size_t)n, 120 + i, "blocks that share pages");
    free(from);
    free(to);
  }
}
/* MPI calls use the buffer next. */
static void part_again(void) {
  unsigned char *to = calloc(N, 1), sum[8];
  if (rank == 1) {
    late_send(N, 31, 31);
    late_send(N, 32, 31);
    MPI_Recv(to, N, MPI_BYTE, 0, 32, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(to, N, 32, "passed on");
    late_send(N, 33, 33);
    memset(to, 0, N);
  } else {
    receive(to, N, 31);
    MPI_Recv(to, N, MPI_BYTE, 1, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(to, N, MPI_BYTE, 1, 32, MPI_COMM_WORLD);
    receive(to, N, 33);
  }
  MPI_Reduce(to, sum, 8, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < 8; i++)
    if (sum[i] != value(33, (size_t)i)) fail("reduced", i);
  free(to);
}
/* Collectives of ranks 0 and 1. */
enum { ODD = 100001 };
static void collective(int which, int root, const char *what) {
  unsigned char *to = aligned_alloc(4096, 2 * N), *from = aligned_alloc(4096, 2 * N);
  memset(to, 0, 2 * N);
  fill(from, N, 50 + rank);
  fill(from + N, N, 60 + rank);
  if (rank == 1) nap(LATE_MS);
  begin();
  switch (which) {
  case 0:
    MPI_Bcast(rank == root ? from : to, N, MPI_BYTE, root, pair);
    break;
  case 1:
    MPI_Gather(from, N, MPI_BYTE, to, N, MPI_BYTE, root, pair);
    break;
  case 2:
    MPI_Scatter(from, N, MPI_BYTE, to, N, MPI_BYTE, root, pair);
    break;
  case 3:
    MPI_Allgather(from, N, MPI_BYTE, to, N, MPI_BYTE, pair);
    break;
  default:
    MPI_Alltoall(from, N, MPI_BYTE, to, N, MPI_BYTE, pair);
  }
  if (rank == 0) end();
  memset(from, 0, 2 * N);
  if (which == 0 && rank != root) check(to, N, 50 + root, what);
  if (which == 1 && rank == root)
    for (int i = 0; i < 2; i++) check(to + i * N, N, 50 + i, what);
  if (which == 2) check(to, N, (rank == 0 ? 50 : 60) + root, what);
  if (which == 3)
    for (int i = 0; i < 2; i++) check(to + i * N, N, 50 + i, what);
  if (which == 4)
    for (int i = 0; i < 2; i++) check(to + i * N, N, (rank == 0 ? 50 : 60) + i, what);
  free(to);
  free(from);
}
static void part_bcast(void) { collective(0, 1, "broadcast by a late root"); }
static void part_bcastroot(void) { collective(0, 0, "broadcast to a late rank"); }
static void part_gather(void) { collective(1, 0, "gathered"); }
static void part_scatter(void) { collective(2, 1, "scattered"); }
static void part_allgather(void) { collective(3, 0, "gathered by all"); }
static void part_alltoall(void) { collective(4, 0, "all to all"); }
/* What is sent lies in pages of what is received, or in a copy that is the library's: nothing may be left behind that others still need. */
static void part_inplace(void) {
  unsigned char *at = malloc(2 * ODD);
  for (int turn = 0; turn < 2; turn++) {
    fill(at + rank * ODD, ODD, 70 + rank + turn);
    if (rank == 1) nap(LATE_MS);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, at, ODD, MPI_BYTE, pair);
    for (int i = 0; i < 2; i++) check(at + i * ODD, ODD, 70 + i + turn, "gathered in place");
    for (int i = 0; i < 2; i++) fill(at + i * ODD, ODD, 80 + 2 * rank + i + turn);
    if (rank == 1) nap(LATE_MS);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, at, ODD, MPI_BYTE, pair);
    for (int i = 0; i < 2; i++) check(at + i * ODD, ODD, 80 + 2 * i + rank + turn, "all to all in place");
  }
  free(at);
}
/* The last of a reduction's rounds brings what others have combined. */
static void part_allreduce(void) {
  enum { COUNT = N / 8 };
  double *from = malloc(N), *to = malloc(N);
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < COUNT; i++) from[i] = i + rank + turn;
    if (rank == turn) nap(LATE_MS);
    MPI_Allreduce(from, to, COUNT, MPI_DOUBLE, MPI_SUM, pair);
    memset(from, 0, N);
    for (int i = 0; i < COUNT; i++)
      if (to[i] != 2.0 * (i + turn) + 1) fail("reduced by all", i);
  }
  free(from);
  free(to);
}
/* Persistent requests: inactive behind the wait, started again while the message before is on its way. */
static void part_persistent(void) {
  unsigned char *to = aligned_alloc(4096, N), *from = aligned_alloc(4096, N);
  MPI_Request requests[2];
  memset(to, 0, N);
  MPI_Recv_init(to, N, MPI_BYTE, 1 - rank, 44, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(from, N, MPI_BYTE, 1 - rank, 44, MPI_COMM_WORLD, &requests[1]);
  for (int turn = 0; turn < 3; turn++) {
    fill(from, N, 90 + 3 * rank + turn);
    if (rank == 1) nap(LATE_MS);
    MPI_Startall(2, requests);
    if (rank == 0) begin();
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) end();
    if (requests[0] == MPI_REQUEST_NULL || requests[1] == MPI_REQUEST_NULL) fail("a persistent request is gone", turn);
    if (turn != 1) check(to, N, 90 + 3 * (1 - rank) + turn, "by a persistent request");
  }
  memset(from, 0, N);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  free(to);
  free(from);
}
/* Messages stay in order. */
static void part_order(void) {
  enum { COUNT = 40, SMALL = 40000 };
  unsigned char *all = calloc(COUNT, SMALL);
  int last = -1;
  if (rank == 1) {
    nap(LATE_MS);
    for (int i = 0; i < COUNT; i++) {
      fill(all + i * SMALL, SMALL, i);
      MPI_Send(all + i * SMALL, SMALL, MPI_BYTE, 0, 34, MPI_COMM_WORLD);
    }
    MPI_Send(&rank, 1, MPI_INT, 0, 34, MPI_COMM_WORLD);
  } else {
    begin();
    for (int i = 0; i < COUNT; i++)
      MPI_Recv(all + i * SMALL, SMALL, MPI_BYTE, 1, 34, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&last, 1, MPI_INT, 1, 34, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (last != 1) fail("the small one behind them", last);
    for (int i = COUNT; i-- > 0;) check(all + i * SMALL, SMALL, i, "in order");
  }
  free(all);
}
/* MPI_ERRORS_RETURN: the call itself says what is wrong. */
static void part_returns(void) {
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  unsigned char *at = calloc(N, 1);
  if (rank == 1) {
    nap(LATE_MS);
    MPI_Send(at, N, MPI_BYTE, 0, 35, own);
  } else {
    int class = 0, code = MPI_Recv(at, N / 2, MPI_BYTE, 1, 35, own, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    if (class != MPI_ERR_TRUNCATE) fail("truncation is not told", class);
  }
  MPI_Comm_free(&own);
  free(at);
}
/* Not touched before MPI_Finalize, which waits. */
static void part_finalize(void) {
  if (rank == 1) return late_send(N, 36, 36);
  receive(calloc(N, 1), N, 36);
}
/* Eight times the same: rank 0 computes while the message is on its way. */
static void part_learn(void) {
  for (int round = 0; round < 8; round++) {
    if (rank == 1) late_send(N, 40 + round, 40);
    else {
      unsigned char *to = calloc(N, 1);
      begin();
      MPI_Recv(to, N, MPI_BYTE, 1, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      end();
      nap(LATE_MS);
      check(to, N, 40 + round, "learnt");
      free(to);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}
/* Ends the job: the message is longer than the buffer. */
static void part_truncated(void) {
  if (rank == 1) return late_send(N, 37, 37);
  unsigned char *to = calloc(N, 1);
  receive(to, N / 2, 37);
  printf("%d\n", to[5]);
}
/* Nothing ever comes. */
static void part_never(void) {
  if (rank == 1) return;
  unsigned char *to = calloc(N, 1);
  receive(to, N, 38);
  printf("%d\n", to[5]);
}
/* Nothing ever comes, and the kernel, or MPI's next call, is what waits. */
static void part_written(void) {
  if (rank == 1) return;
  unsigned char *to = calloc(N, 1);
  receive(to, N, 39);
  if (write(1, to, N) != N) fail("write", errno);
}
static void part_barred(void) {
  if (rank == 1) return;
  receive(calloc(N, 1), N, 39);
  MPI_Barrier(MPI_COMM_SELF);
}
/* Rank 1 is killed by who has started this while rank 0 waits for its message. */
static void part_killed(void) {
  if (rank == 1) {
    printf("%d\n", (int)getpid());
    fflush(stdout);
    nap(60000);
  }
  part_never();
}

static const struct {
  const char *name;
  void (*run)(void);
  int ends_well;
} PARTS[] = {
    {"read", part_read, 1},         {"write", part_write, 1},     {"send", part_send, 1},       {"twice", part_twice, 1},
    {"sysread", part_sysread, 1},   {"syswrite", part_syswrite, 1}, {"fork", part_fork, 1},     {"free", part_free, 1},
    {"realloc", part_realloc, 1},   {"handler", part_handler, 1}, {"stack", part_stack, 1},     {"page", part_page, 1},
    {"short", part_short, 1},       {"any", part_any, 1},         {"wait", part_wait, 1},       {"sendrecv", part_sendrecv, 1},
    {"again", part_again, 1},       {"order", part_order, 1},     {"returns", part_returns, 1}, {"thread", part_thread, 1},
    {"beside", part_beside, 1},     {"bcast", part_bcast, 1},       {"bcastroot", part_bcastroot, 1}, {"gather", part_gather, 1}, {"scatter", part_scatter, 1},
    {"allgather", part_allgather, 1}, {"alltoall", part_alltoall, 1}, {"inplace", part_inplace, 1}, {"allreduce", part_allreduce, 1},
    {"persistent", part_persistent, 1}, {"finalize", part_finalize, 1}, {"learn", part_learn, 0},
    {"truncated", part_truncated, 0}, {"never", part_never, 0}, {"killed", part_killed, 0},
    {"written", part_written, 0}, {"barred", part_barred, 0},
};

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair);
  for (size_t part = 0; part < sizeof PARTS / sizeof *PARTS; part++) {
    int wanted = argc == 1 && PARTS[part].ends_well;
    for (int i = 1; i < argc; i++) wanted |= strcmp(argv[i], PARTS[part].name) == 0;
    if (!wanted) continue;
    early = 0;
    if (rank < 2) PARTS[part].run();
    int was_early = early;
    if (strcmp(PARTS[part].name, "finalize") != 0) MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && was_early > 0) fprintf(stderr, "early: %s %d\n", PARTS[part].name, was_early);
  }
  MPI_Finalize();
  if (rank == 0) puts("all is right");
  return 0;
}
