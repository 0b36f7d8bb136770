/* Support for the test programs: checks that say where they failed, and output in rank order from rank 0.
 * VMPI_TEST_TRACE=1 prints each step at once on stderr, to see where a program hangs. */
#ifndef T_H
#define T_H
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int t_rank = -1, t_size, t_failures, t_trace;
static char *t_text;
static size_t t_used, t_room;

/* A line of this rank's report. */
__attribute__((unused)) static void say(const char *format, ...) {
    va_list args;
    if (t_room - t_used < 4096) t_text = realloc(t_text, t_room = t_room * 2 + 8192);
    va_start(args, format);
    int head = sprintf(t_text + t_used, "[%d] ", t_rank);
    t_used += head + vsnprintf(t_text + t_used + head, 2048, format, args);
    va_end(args);
    t_text[t_used++] = '\n';
    t_text[t_used] = 0;
}

/* A condition that must hold; the program goes on, and ends with code 1. */
#define OK(condition) t_check(!!(condition), #condition, __FILE__, __LINE__, 0, 0)
/* Two integers that must be equal. */
#define EQ(a, b) t_equal((long long)(a), (long long)(b), #a " == " #b, __FILE__, __LINE__)
/* What the standard says and a peer does not do: checked under vmpi only. */
#define STRICT(condition) OK(!getenv("VMPI_JOBID") || (condition))
__attribute__((unused)) static int t_check(int holds, const char *what, const char *file, int line, long long a, long long b) {
    if (!holds && ++t_failures <= 20)
        fprintf(stderr, "%s:%d: rank %d: FAILED: %s (%lld, %lld)\n", file, line, t_rank, what, a, b);
    return holds;
}

__attribute__((unused)) static int t_equal(long long a, long long b, const char *what, const char *file, int line) {
    return t_check(a == b, what, file, line, a, b);
}

/* Begin a part of the test. */
#define PART(name) t_part(name, __LINE__)
__attribute__((unused)) static void t_part(const char *name, int line) {
    if (t_trace) fprintf(stderr, "rank %d: %s (line %d)\n", t_rank, name, line);
}

__attribute__((unused)) static void t_begin(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t_size);
    t_trace = getenv("VMPI_TEST_TRACE") != NULL;
}

/* Print all reports in rank order at rank 0, finalize, return the exit code. */
__attribute__((unused)) static int t_end(void) {
    PART("end");
    long used = (long)t_used;
    if (t_rank == 0) {
        if (t_text) fputs(t_text, stdout);
        for (int r = 1; r < t_size; r++) {
            MPI_Recv(&used, 1, MPI_LONG, r, 32001, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            char *text = calloc(1, used + 1);
            MPI_Recv(text, used, MPI_CHAR, r, 32002, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fputs(text, stdout);
            free(text);
        }
        fflush(stdout);
    } else {
        MPI_Send(&used, 1, MPI_LONG, 0, 32001, MPI_COMM_WORLD);
        MPI_Send(t_text ? t_text : "", used, MPI_CHAR, 0, 32002, MPI_COMM_WORLD);
    }
    int failures = 0;
    MPI_Allreduce(&t_failures, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (t_rank == 0) printf(failures ? "%d checks FAILED\n" : "all checks hold\n", failures);
    MPI_Finalize();
    return failures != 0;
}

/* A byte that tells its rank, message and place. */
__attribute__((unused)) static unsigned char t_byte(int rank, int message, size_t i) {
    return (unsigned char)(rank * 31 + message * 7 + i * 13 + (i >> 8));
}
__attribute__((unused)) static void t_fill(void *p, size_t n, int rank, int message) {
    for (size_t i = 0; i < n; i++) ((unsigned char *)p)[i] = t_byte(rank, message, i);
}
/* Index of the first wrong byte, or -1. */
__attribute__((unused)) static long t_wrong(const void *p, size_t n, int rank, int message) {
    for (size_t i = 0; i < n; i++)
        if (((const unsigned char *)p)[i] != t_byte(rank, message, i)) return (long)i;
    return -1;
}
#endif
