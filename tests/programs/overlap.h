/* What overlap.c and overlap_edges.c have in common: bytes that say whose they are, and a rank 1 that is late. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 1 << 20, LATE_MS = 300, EARLY_MS = 150 };

static int rank, early;
static double started;

static void nap(int ms) {
  struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}
static unsigned char value(int seed, size_t at) { return (unsigned char)(at * 7 + at / 251 + (unsigned)seed * 31 + 1); }
static void fill(unsigned char *at, size_t n, int seed) {
  for (size_t i = 0; i < n; i++) at[i] = value(seed, i);
}
static void fail(const char *what, long at) {
  fprintf(stderr, "rank %d: %s (%ld)\n", rank, what, at);
  fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 9);
}
static void check(const unsigned char *at, size_t n, int seed, const char *what) {
  for (size_t i = 0; i < n; i++)
    if (at[i] != value(seed, i)) fail(what, (long)i);
}
static double since_ms(void) { return (MPI_Wtime() - started) * 1e3; }
static void begin(void) { started = MPI_Wtime(); }
static void end(void) { early += since_ms() < EARLY_MS; }
static void receive(void *to, int n, int tag) {
  begin();
  MPI_Recv(to, n, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  end();
}
static void late_send(int n, int seed, int tag) {
  unsigned char *from = malloc((size_t)n);
  fill(from, (size_t)n, seed);
  nap(LATE_MS);
  MPI_Send(from, n, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
  free(from);
}
