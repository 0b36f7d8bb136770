/* The physical floor: two processes of one core hand it to each other by futex, and by sched_yield. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static _Atomic int *word;
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}
static void pass_futex(int me) {
    while (atomic_load(word) != me) syscall(SYS_futex, word, FUTEX_WAIT, 1 - me, NULL, NULL, 0);
    atomic_store(word, 1 - me);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
static void pass_yield(int me) {
    while (atomic_load(word) != me) sched_yield();
    atomic_store(word, 1 - me);
}
static void measure(const char *what, void (*pass)(int), int turns) {
    atomic_store(word, 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < turns; i++) pass(1);
        _exit(0);
    }
    for (int i = 0; i < turns / 10; i++) pass(0);
    double start = now();
    for (int i = turns / 10; i < turns; i++) pass(0);
    printf("%s %.4f\n", what, (now() - start) / (turns - turns / 10) / 2);
    fflush(stdout);
    waitpid(child, NULL, 0);
}
int main(void) {
    cpu_set_t allowed, one;
    word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sched_getaffinity(0, sizeof allowed, &allowed);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed)) {
            CPU_SET(cpu, &one);
            break;
        }
    sched_setaffinity(0, sizeof one, &one);
    measure("futex hand-off, one way", pass_futex, 20000);
    measure("sched_yield alternation, one way", pass_yield, 20000);
    return 0;
}
