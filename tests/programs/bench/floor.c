/* The physical floor, without any MPI: what the machine and the kernel take for the same.
 *   floor ring CPU CPU N...      a token round V = N/2 processes of one core, by futex and by sched_yield, us a hop; and V hops; for N = 2
 *                                between the two cores, by a spun-on cache line; by futex where each process touches in its turn as much memory
 *                                of its own as a rank does, and where N processes are on both cores, V on each; for the collectives V hops, and
 *                                V switches by sched_yield in whatever order the kernel has, with and without touching memory
 *   floor order CPU X N FIGURE...  a token round N processes of one core, in the order in which they were made and against it, us a hop:
 *                                FIGURE_with and FIGURE_against
 *   floor pair FIGURE CPU CPU    two processes, us one way: on one core by futex and by sched_yield, on two by a spun-on cache line
 *   floor copy FIGURE CPU CPU BYTES...  copying what a process of the first CPU has, on the second: from a shared mapping, by process_vm_readv
 *   floor turns FIGURE CPU SIDE STEPS V...  V processes of one core, each with 1/V of half of SIDE x SIDE points, compute them as stencil.c does, in turn,
 *                                once a step, without exchanging anything, ms for all steps: turns by futex and by sched_yield
 *   floor spawn N...             posix_spawn of /bin/true N times, until all have ended, s */
#define BENCH_WITHOUT_MPI
#include "bench.h"
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#define MOST 4096
/* A word per process, a cache line each: how many turns it has been given. */
struct word {
    _Alignas(64) _Atomic int turns;
};
static struct word *words;
static void wait_futex(int me, int turn) {
    int seen;
    while ((seen = atomic_load(&words[me].turns)) < turn)
        syscall(SYS_futex, &words[me].turns, FUTEX_WAIT, seen, NULL, NULL, 0);
}
static void give_futex(int to, int turn) {
    atomic_store(&words[to].turns, turn);
    syscall(SYS_futex, &words[to].turns, FUTEX_WAKE, 1, NULL, NULL, 0);
}
static void wait_yield(int me, int turn) {
    while (atomic_load(&words[me].turns) < turn) sched_yield();
}
static void wait_spin(int me, int turn) {
    while (atomic_load(&words[me].turns) < turn) __builtin_ia32_pause();
}
static void give(int to, int turn) { atomic_store(&words[to].turns, turn); }

/* Whether a process touches memory of its own in its turn: as much as a rank does round a ring of 64, whose turn is 93 lines of data in 23 pages (single-stepped). Each page has a cache line of the page table for itself, as most of a rank's have. */
#define PAGES 23
#define LINES 4
#define STRIDE (128 << 10)
static int touches;
static void touch(void) {
    static volatile char *own;
    if (!own) {
        char *memory = mmap(NULL, (long)PAGES * STRIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) perror("memory"), _exit(1);
        own = memory;
    }
    for (long page = 0; page < PAGES; page++)
        for (long line = 0; line < LINES; line++) own[page * STRIDE + line * 64]++;
}

/* What a process does in its turn: a step of a block of rows x columns points, from one array to the other. */
static int rows, columns;
static double *block[2];
static void compute(void) {
    if (touches) touch();
    if (rows == 0) return;
    long width = columns + 2;
    for (int i = 0; i < 2 && !block[i]; i++) {
        block[i] = malloc((rows + 2) * width * sizeof(double));
        if (!block[i]) perror("memory"), _exit(1);
        for (long k = 0; k < (rows + 2) * width; k++) block[i][k] = (double)(k * 17 % 1009) / 7;
    }
    five_points(block[0], block[1], rows, columns);
    double *other = block[0];
    block[0] = block[1], block[1] = other;
}

/* As fork; the child is on `cpu`, and ends with its parent. */
static pid_t process_on(int cpu) {
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        exit(1);
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin_to(cpu);
    }
    return child;
}

/* Microseconds a hop of a token round `members` processes, each to the one `step` further; the first half of them on cpus[0], the others on
 * cpus[1]. Laps grow until they take long enough. */
static double ring_by(int step, int members, const int cpus[2], void (*await)(int, int), void (*pass)(int, int)) {
    for (int laps = 16;; laps *= 4) {
        pid_t children[MOST];
        for (int i = 0; i < members; i++) atomic_store(&words[i].turns, 0);
        fflush(stdout);
        for (int me = 1; me < members; me++)
            if ((children[me] = process_on(cpus[me * 2 / members])) == 0) {
                for (int turn = 1; turn <= laps; turn++) {
                    await(me, turn);
                    compute();
                    pass((me + step + members) % members, turn);
                }
                _exit(0);
            }
        pin_to(cpus[0]);
        double start = 0;
        int warm = laps / 8;
        for (int turn = 1; turn <= laps; turn++) {
            if (turn == warm) start = now_us();
            compute();
            pass((step + members) % members, turn);
            await(0, turn);
        }
        double us = now_us() - start;
        for (int i = 1; i < members; i++) waitpid(children[i], NULL, 0);
        if (us >= batch_us()) return us / (laps - warm + 1) / members;
    }
}

static double ring(int members, const int cpus[2], void (*await)(int, int), void (*pass)(int, int)) {
    return ring_by(1, members, cpus, await, pass);
}

/* Turns of all members; 0 as long as one of them has had none. */
static long turns_of(int members) {
    long sum = 0;
    for (int i = 0; i < members; i++) {
        int turns = atomic_load(&words[i].turns);
        if (turns == 0) return 0;
        sum += turns;
    }
    return sum;
}

/* Microseconds from turn to turn where `members` of one core do nothing but yield: in no order, and nobody waits for anybody. */
static double switches(int members, int cpu) {
    pid_t children[MOST];
    fflush(stdout);
    for (int i = 0; i < members; i++) atomic_store(&words[i].turns, 0);
    for (int me = 0; me < members; me++)
        if ((children[me] = process_on(cpu)) == 0)
            for (int turn = 1;; turn++) {
                compute();
                give(me, turn);
                sched_yield();
            }
    pin_to(cpu);
    while (turns_of(members) == 0) {
        if (waitpid(-1, NULL, WNOHANG) != 0) {
            fprintf(stderr, "a process that was to yield has ended\n");
            exit(1);
        }
        usleep(1000);
    }
    double start = now_us();
    long before = turns_of(members);
    usleep(batch_us());
    double us = now_us() - start;
    long turns = turns_of(members) - before;
    for (int i = 0; i < members; i++) kill(children[i], SIGKILL);
    for (int i = 0; i < members; i++) waitpid(children[i], NULL, 0);
    return us / turns;
}

static void order(int cpu, const char *x, int members, int count, char **figures) {
    const int cpus[2] = {cpu, cpu};
    for (int step = 1; members >= 2 && members <= MOST && step >= -1; step -= 2) {
        double futex = ring_by(step, members, cpus, wait_futex, give_futex), yield = ring_by(step, members, cpus, wait_yield, give);
        const char *way = step == 1 ? "with" : "against";
        for (int i = 0; i < count; i++)
            printf("@ %s_%s %s %.4f futex\n@ %s_%s %s %.4f yield\n", figures[i], way, x, futex, figures[i], way, x, yield);
    }
}

static void turns(const char *figure, int cpu, int side, int steps, int v) {
    const int cpus[2] = {cpu, cpu};
    if (v < 2 || v > MOST || side / v < 1) return;
    rows = side / v, columns = side / 2;
    double futex = ring(v, cpus, wait_futex, give_futex), yield = ring(v, cpus, wait_yield, give);
    for (int i = 0; i < 2; i++) free(block[i]), block[i] = NULL;
    printf("@ %s %d %.4f futex\n@ %s %d %.4f yield\n", figure, v, futex * v * steps / 1e3, figure, v, yield * v * steps / 1e3);
}

static void pair(const char *figure, int a, int b) {
    const int cpus[2] = {a, b};
    if (a == b) {
        printf("@ %s 8 %.4f futex\n", figure, ring(2, cpus, wait_futex, give_futex));
        printf("@ %s 8 %.4f yield\n", figure, ring(2, cpus, wait_yield, give));
    } else
        printf("@ %s 8 %.4f spin\n", figure, ring(2, cpus, wait_spin, give));
}

static void rings(int cpu, int other, int n) {
    const int cpus[2] = {cpu, cpu}, both[2] = {cpu, other};
    int v = n / 2;
    if (n == 2 && cpu != other) printf("@ ring 2 %.4f spin\n", ring(2, both, wait_spin, give));
    if (v < 2 || v > MOST) return;
    double futex = ring(v, cpus, wait_futex, give_futex), yield = ring(v, cpus, wait_yield, give);
    double plain = switches(v, cpu);
    touches = 1;
    double touching = ring(v, cpus, wait_futex, give_futex), touched = switches(v, cpu);
    touches = 0;
    printf("@ ring %d %.4f futex\n@ ring %d %.4f yield\n@ ring %d %.4f touching\n", n, futex, n, yield, n, touching);
    if (cpu != other && n <= MOST) printf("@ ring %d %.4f spread\n", n, ring(n, both, wait_futex, give_futex));
    const struct { const char *name; double us; } ways[] = {{"futex", futex}, {"yield", yield}, {"switch", plain}, {"touching", touched}};
    for (size_t i = 0; i < 2 * sizeof ways / sizeof *ways; i++)
        printf("@ %s %d %.4f %s\n", i % 2 ? "barrier" : "allreduce", n, ways[i / 2].us * v, ways[i / 2].name);
}

static void copy(const char *figure, int owner_cpu, int reader_cpu, int count, char **sizes) {
    long most = 0;
    for (int i = 0; i < count; i++) most = atol(sizes[i]) > most ? atol(sizes[i]) : most;
    char *shared = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *heap = malloc(most), *to = malloc(most);
    if (shared == MAP_FAILED || !heap || !to) {
        perror("memory");
        exit(1);
    }
    memset(heap, 1, most), memset(to, 2, most);
    atomic_store(&words[0].turns, 0);
    pid_t owner = process_on(owner_cpu);
    if (owner == 0) {
        memset(shared, 3, most), memset(heap, 3, most);
        give_futex(0, 1);
        pause();
        _exit(0);
    }
    pin_to(reader_cpu);
    wait_futex(0, 1);
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < count; i++) {
            long bytes = atol(sizes[i]);
            double us = 0;
            long times = 1;
            /* The first time is a warm-up: it maps the pages. */
            for (int warm = 1;; times *= warm ? 1 : 2, warm = 0) {
                double start = now_us();
                for (long k = 0; k < times; k++) {
                    if (way == 0)
                        memcpy(to, shared, bytes);
                    else {
                        struct iovec here = {to, bytes}, there = {heap, bytes};
                        if (process_vm_readv(owner, &here, 1, &there, 1, 0) != bytes) {
                            fprintf(stderr, "process_vm_readv: %s\n", strerror(errno));
                            goto next;
                        }
                    }
                    __asm__ volatile("" : : "r"(to) : "memory");
                }
                if ((us = now_us() - start) >= batch_us() / 4 && !warm) break;
            }
            const char *name = way ? "process_vm_readv" : "memcpy";
            printf("@ %s %ld %.4f %s\n", figure, bytes, us / times, name);
            if (bytes >= 4096) printf("@ %s_bandwidth %ld %.4f %s\n", figure, bytes, bytes * times / us / 1e3, name);
        }
next:
    kill(owner, SIGKILL);
    waitpid(owner, NULL, 0);
}

static void spawn(int n) {
    extern char **environ;
    char *arguments[] = {"true", NULL};
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    double start = now_us();
    for (int i = 0; i < n; i++) {
        pid_t child;
        if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) != 0) {
            perror("posix_spawn");
            exit(1);
        }
    }
    while (wait(NULL) > 0) {}
    double wall = (now_us() - start) / 1e6;
    getrusage(RUSAGE_CHILDREN, &after);
    double cpu = after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec +
                 (after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
    printf("@ wall %d %.6f posix_spawn\n@ cpu %d %.6f posix_spawn\n", n, wall, n, cpu);
}

int main(int argc, char **argv) {
    words = mmap(NULL, MOST * sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED) return 1;
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "ring") && argc > 3)
        for (int i = 4; i < argc; i++) rings(atoi(argv[2]), atoi(argv[3]), atoi(argv[i])), fflush(stdout);
    else if (!strcmp(what, "order") && argc > 5)
        order(atoi(argv[2]), argv[3], atoi(argv[4]), argc - 5, argv + 5);
    else if (!strcmp(what, "pair") && argc == 5)
        pair(argv[2], atoi(argv[3]), atoi(argv[4]));
    else if (!strcmp(what, "copy") && argc > 5)
        copy(argv[2], atoi(argv[3]), atoi(argv[4]), argc - 5, argv + 5);
    else if (!strcmp(what, "turns") && argc > 6)
        for (int i = 6; i < argc; i++) turns(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), atoi(argv[i])), fflush(stdout);
    else if (!strcmp(what, "spawn"))
        for (int i = 2; i < argc; i++) spawn(atoi(argv[i]));
    else {
        fprintf(stderr, "floor ring|order|pair|copy|turns|spawn ...\n");
        return 2;
    }
    return 0;
}
