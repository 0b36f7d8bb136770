/* A library to be preloaded: says in MPI_Finalize how often malloc and the like were called inside MPI's calls for messages and barriers, as `malloc: N` on stderr, with the
 * size and the caller of the first such call. Where a call has been left behind a block may lie beside a guarded buffer, and a touch may have come inside malloc.
 * What the first large message takes is not counted: functions are looked up by name then, and nothing is guarded yet. */
#include <mpi.h>
#include <stdio.h>
#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

enum { LARGE = 32768 };
static int inside, any_large;
static unsigned long count;
static size_t first_size;
static void *first_caller;

static void note(size_t size, void *caller) {
  if (!inside) return;
  if (count++ == 0) {
    first_size = size;
    first_caller = caller;
  }
}

#define NOTE(size) note(size, __builtin_return_address(0))

void *malloc(size_t size) {
  NOTE(size);
  return __libc_malloc(size);
}
void *calloc(size_t number, size_t size) {
  NOTE(number * size);
  return __libc_calloc(number, size);
}
void *realloc(void *block, size_t size) {
  NOTE(size);
  return __libc_realloc(block, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
  NOTE(size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void **block, size_t alignment, size_t size) {
  NOTE(size);
  *block = __libc_memalign(alignment, size);
  return *block ? 0 : 12;
}
void free(void *block) {
  if (block) NOTE(0);
  __libc_free(block);
}

static void leave(int bytes) {
  inside--;
  if (bytes < LARGE || any_large) return;
  any_large = 1;
  count = 0;
}

#define INSIDE(call, bytes) \
  inside++;                 \
  int code = call;          \
  leave(bytes);             \
  return code

int MPI_Send(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  INSIDE(PMPI_Send(buf, n, type, to, tag, comm), n);
}
int MPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
  INSIDE(PMPI_Isend(buf, n, type, to, tag, comm, request), n);
}
int MPI_Recv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
  INSIDE(PMPI_Recv(buf, n, type, from, tag, comm, status), n);
}
int MPI_Sendrecv(const void *buf, int n, MPI_Datatype type, int to, int tag, void *into, int room, MPI_Datatype as, int from, int with, MPI_Comm comm, MPI_Status *status) {
  INSIDE(PMPI_Sendrecv(buf, n, type, to, tag, into, room, as, from, with, comm, status), n);
}
int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses) {
  INSIDE(PMPI_Waitall(n, requests, statuses), 0);
}
int MPI_Barrier(MPI_Comm comm) {
  INSIDE(PMPI_Barrier(comm), 0);
}
int MPI_Finalize(void) {
  fprintf(stderr, "malloc: %lu first %zu from %p\n", count, first_size, first_caller);
  fflush(stderr);
  return PMPI_Finalize();
}
