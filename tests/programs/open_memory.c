/* open_memory [pending|thread|forks]: large messages out of and into memory of every kind, often, with all that a program does to its memory in between:
 * free, malloc again, realloc, fork (parent and child must not see each other's writes; while a receive is pending, with another thread, or in several threads at once), a bare
 * clone, system. Rank 0 also says whether the ranks' memory lies in memory files. */
#define _GNU_SOURCE
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 256 << 10, LARGE = 3 << 20 };

static int rank, size;

static void check(int good, const char *what)
{
    if (!good) {
        printf("rank %d: %s\n", rank, what);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static unsigned char at(int owner, int round, int i)
{
    return (unsigned char)(owner * 31 + round * 7 + i * 13 + (i >> 8));
}

static void fill(unsigned char *buffer, int bytes, int owner, int round)
{
    for (int i = 0; i < bytes; i++)
        buffer[i] = at(owner, round, i);
}

static void verify(const unsigned char *buffer, int bytes, int owner, int round, const char *what)
{
    for (int i = 0; i < bytes; i++)
        check(buffer[i] == at(owner, round, i), what);
}

/* To the right, from the left, `rounds` times; the contents of every 50th are looked at. */
static void around(unsigned char *out, unsigned char *in, int bytes, int rounds, const char *what)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int round = 0; round < rounds; round++) {
        int look = round % 50 == 0 || round == rounds - 1;
        if (look) {
            fill(out, bytes, rank, round);
            memset(in, 0, (size_t)bytes);
        }
        if (rank % 2 == 0 && size % 2 == 0) {
            MPI_Send(out, bytes, MPI_BYTE, right, round, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (size % 2 == 0) {
            MPI_Recv(in, bytes, MPI_BYTE, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_BYTE, right, round, MPI_COMM_WORLD);
        } else {
            MPI_Sendrecv(out, bytes, MPI_BYTE, right, round, in, bytes, MPI_BYTE, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (look)
            verify(in, bytes, left, round, what);
    }
}

static int lies_in_a_file(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int found = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= (unsigned long)address && (unsigned long)address < to)
            found = strstr(line, "vmpi-heap") != NULL;
    }
    fclose(maps);
    return found;
}

static void *sleeper(void *unused)
{
    pause();
    return unused;
}

/* Each child has what its parent had at its fork, and writes to its own. */
static unsigned char *shared;
static _Atomic int wrong;
static void *forker(void *unused)
{
    for (int times = 0; times < 40; times++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            int good = 1;
            for (int i = 0; i < BYTES; i += 1024)
                good &= shared[i] == at(rank, 9, i);
            memset(shared, 206, BYTES);
            for (int i = 0; i < BYTES; i += 1024)
                good &= shared[i] == 206;
            _exit(!good);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            wrong++;
    }
    return unused;
}

int main(int argc, char **argv)
{
    int forks = argc > 1 && strcmp(argv[1], "forks") == 0;
    int pending = argc > 1 && strcmp(argv[1], "pending") == 0, thread = argc > 1 && strcmp(argv[1], "thread") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size;

    /* In the heap, and in areas of their own. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    unsigned char *block = malloc(8 * BYTES), *out = block + 1000, *in = block + 4 * BYTES + 77;
    unsigned char *far_out = malloc(LARGE), *far_in = malloc(LARGE);
    const char *wanted = getenv("VMPI_MAP_MEMORY");
    int all = 0, any = 0;
    for (int tries = 0; tries < 20 && !all && (tries < 2 || !wanted || *wanted != '0'); tries++) {
        around(out, in, BYTES, 200, "in the heap");
        around(far_out, far_in, LARGE, 20, "in areas of their own");
        int mine[2] = {lies_in_a_file(out + BYTES / 2), lies_in_a_file(far_in + LARGE / 2)}, both = mine[0] && mine[1], one = mine[0] || mine[1];
        MPI_Allreduce(&both, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&one, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%s memory lies in files\n", all ? "all" : any ? "some" : "no");

    /* Given back, and got again, most likely at the same address. */
    for (int i = 0; i < 20; i++) {
        free(far_in);
        far_in = malloc(LARGE);
        around(far_out, far_in, LARGE, 3, "in memory that was freed and is new");
    }
    /* Moved elsewhere by the kernel, with something else at the old address. */
    far_out = realloc(far_out, 8 * LARGE);
    unsigned char *other = malloc(LARGE);
    around(far_out, far_in, LARGE, 3, "in memory that has moved");
    around(other, far_in, LARGE, 100, "where something else was");
    around(far_out + 5 * LARGE, other, LARGE, 3, "in memory that was added");

    /* Given back in part, and got again: what is new is zero, and stays so when it is used often. */
    unsigned char *area = mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(area != MAP_FAILED, "mmap");
    memset(area, 99, 2 * LARGE);
    around(area, area + LARGE, LARGE, 150, "in an area");
    for (int times = 0; times < 2; times++) {
        unsigned char *again = area + (times == 0 ? 0 : LARGE / 2);
        check(munmap(again, LARGE) == 0, "munmap");
        check(mmap(again, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == again, "mmap again");
        /* Only the last part of it is written to: the rest is what it was given as. */
        around(again + LARGE - BYTES, in, BYTES, 1500, "in new memory within an area");
        for (int i = 0; i < LARGE - BYTES; i++)
            check(again[i] == 0, "new memory holds old bytes");
    }
    check(munmap(area, 2 * LARGE) == 0, "munmap of all");

    /* Parent and child have their own memory, whoever writes first, the heap's own book-keeping included. */
    fill(out, BYTES, rank, 1);
    fill(far_out, LARGE, rank, 2);
    int down[2], up[2], status;
    char byte;
    check(pipe(down) == 0 && pipe(up) == 0, "pipe");
    fflush(stdout);
    /* A child by the bare system call writes to its own memory, or has none. */
    int open = lies_in_a_file(far_out + LARGE / 2);
    check(wanted && *wanted == '0' ? !open : open || !all, "what lay in a file does no longer");
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        /* Its child must not take the memory back that this one has not got. */
        pid_t grandchild = fork();
        if (grandchild == 0)
            syscall(SYS_exit_group, 0);
        waitpid(grandchild, NULL, 0);
        memset(far_out + LARGE / 2, 205, 1000);
        syscall(SYS_exit_group, 0);
    }
    check(child > 0 && waitpid(child, &status, 0) == child, "a bare child");
    check(open ? WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV : WIFEXITED(status), "what became of a bare child");
    verify(far_out, LARGE, rank, 2, "a bare child wrote to its parent's memory");

    if (forks) {
        pthread_t forkers[3];
        check(lies_in_a_file(out + BYTES / 2), "there is nothing that their children could share");
        shared = out;
        fill(out, BYTES, rank, 9);
        for (int i = 0; i < 3; i++)
            check(pthread_create(&forkers[i], NULL, forker, NULL) == 0, "pthread_create");
        for (int i = 0; i < 3; i++)
            check(pthread_join(forkers[i], NULL) == 0, "pthread_join");
        check(!wrong, "children of threads that fork at once");
        verify(out, BYTES, rank, 9, "children wrote to their parent's memory");
        fill(out, BYTES, rank, 1);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    pthread_t other_thread;
    if (pending)
        MPI_Irecv(in, BYTES, MPI_BYTE, rank, 77, MPI_COMM_WORLD, &request);
    if (thread)
        check(pthread_create(&other_thread, NULL, sleeper, NULL) == 0, "pthread_create");
    child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        for (int i = 0; i < 100; i++)
            memset(malloc(10000), 3, 10000);
        int good = out[5] == at(rank, 1, 5) && far_out[LARGE - 1] == at(rank, 2, LARGE - 1);
        memset(out, 200, BYTES);
        good &= write(up[1], "", 1) == 1 && read(down[0], &byte, 1) == 1;
        for (int i = 0; i < BYTES; i++)
            good &= out[i] == 200;
        for (int i = 0; i < LARGE; i++)
            good &= far_out[i] == at(rank, 2, i);
        /* And the child's child. */
        pid_t grandchild = fork();
        if (grandchild == 0) {
            memset(out, 201, BYTES);
            _exit(9);
        }
        good &= waitpid(grandchild, &status, 0) == grandchild && WIFEXITED(status) && WEXITSTATUS(status) == 9 && out[7] == 200;
        _exit(good ? 0 : 1);
    }
    check(read(up[0], &byte, 1) == 1, "the child's word");
    verify(out, BYTES, rank, 1, "the child's writes are seen by the parent");
    for (int i = 0; i < 100; i++)
        memset(malloc(10000), 4, 10000);
    memset(far_out, 100, LARGE);
    check(write(down[1], "", 1) == 1, "word to the child");
    check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the parent's writes are seen by the child");
    if (wanted == NULL && !pending && !thread)
        check(!lies_in_a_file(out + BYTES / 2) && !lies_in_a_file(far_out + LARGE / 2), "memory of a program that forks still lies in a file");
    if (pending) {
        MPI_Send(out, BYTES, MPI_BYTE, rank, 77, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify(in, BYTES, rank, 1, "what came after fork");
    }
    if (thread)
        check(pthread_cancel(other_thread) == 0 && pthread_join(other_thread, NULL) == 0, "pthread_join");
    around(out, in, BYTES, 60, "after fork");
    around(far_out, far_in, LARGE, 5, "after fork, in areas of their own");
    check(system("exit 7") == 7 << 8, "system");
    /* Where a child cannot have memory of its own, it must not go on with its parent's. */
    struct rlimit files, none;
    check(getrlimit(RLIMIT_NOFILE, &files) == 0, "getrlimit");
    none = files;
    none.rlim_cur = 3;
    fill(out, BYTES, rank, 5);
    fflush(stdout);
    open = lies_in_a_file(out + BYTES / 2) || lies_in_a_file(far_out + LARGE / 2);
    check(setrlimit(RLIMIT_NOFILE, &none) == 0, "setrlimit");
    child = fork();
    if (child == 0) {
        memset(out, 202, BYTES);
        _exit(0);
    }
    check(setrlimit(RLIMIT_NOFILE, &files) == 0, "setrlimit");
    check(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "a child without files");
    /* It may have gone on if this memory was its own, and is ended if any was not: what messages have laid open again by now, they know. */
    check(WEXITSTATUS(status) == 125 || (!open && WEXITSTATUS(status) == 0), "what became of a child without files");
    verify(out, BYTES, rank, 5, "a child without files wrote to its parent's memory");
    around(out, in, BYTES, 60, "after system");

    /* Everybody sends to everybody at once. */
    MPI_Request requests[64];
    unsigned char *each = malloc((size_t)size * 2 * BYTES);
    for (int round = 0; round < 50; round++) {
        fill(out, BYTES, rank, round);
        int n = 0;
        for (int peer = 0; peer < size; peer++)
            if (peer != rank) {
                MPI_Irecv(each + (size_t)peer * 2 * BYTES, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[n++]);
                MPI_Isend(out, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[n++]);
            }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        if (size > 1)
            verify(each + (size_t)left * 2 * BYTES, BYTES, left, round, "everybody to everybody");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("all bytes are right\n");
    free(each);
    free(block);
    free(far_in);
    free(far_out);
    free(other);
    MPI_Finalize();
    return 0;
}
