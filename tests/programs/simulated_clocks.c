/* In a simulated job clocks tell virtual time, and sleeping does not wait. Sleeps 10 hours in all. */
#define _GNU_SOURCE
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static int wrong;

static void check(const char *what, double got, double wanted, double slack)
{
    if (got < wanted - slack || got > wanted + slack) {
        printf("%s: %.9f, not %.9f\n", what, got, wanted);
        wrong = 1;
    }
}

static double of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static double day(void)
{
    struct timeval time;
    gettimeofday(&time, NULL);
    return time.tv_sec + time.tv_usec * 1e-6;
}

int main(int argc, char **argv)
{
    /* With measured computation a little goes by. */
    const double slack = argc > 1 ? 0.5 : 2e-6;
    MPI_Init(&argc, &argv);
    double wtime = MPI_Wtime(), monotonic = of(CLOCK_MONOTONIC), real = of(CLOCK_REALTIME), now = day();
    time_t seconds = time(NULL);
    clock_t ticks = times(NULL);
    clock_t cpu = clock();
    sleep(3 * 3600);
    usleep(500000);
    struct timespec half = {2 * 3600, 500000000};
    nanosleep(&half, NULL);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &half, NULL);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 3600;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    poll(NULL, 0, 1000 * 3600);
    struct timeval hour = {3600, 0};
    select(0, NULL, NULL, NULL, &hour);
    const double slept = 10 * 3600 + 1.5;
    check("MPI_Wtime", MPI_Wtime() - wtime, slept, slack);
    check("CLOCK_MONOTONIC", of(CLOCK_MONOTONIC) - monotonic, slept, slack);
    check("CLOCK_REALTIME", of(CLOCK_REALTIME) - real, slept, slack);
    check("gettimeofday", day() - now, slept, slack);
    check("time", (double)(time(NULL) - seconds), slept, 1);
    check("times", (double)(times(NULL) - ticks) / sysconf(_SC_CLK_TCK), slept, 0.02 + slack);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    check("clock", (double)(clock() - cpu) / CLOCKS_PER_SEC, 0, slack);
    check("getrusage", usage.ru_utime.tv_sec + usage.ru_utime.tv_usec * 1e-6 + usage.ru_stime.tv_sec, 0, slack);
    /* A loop that looks at the clock ends. */
    double from = of(CLOCK_MONOTONIC);
    while (of(CLOCK_MONOTONIC) < from + 0.01)
        ;
    from = MPI_Wtime();
    while (MPI_Wtime() < from + 0.01)
        ;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    puts(wrong ? "wrong" : "clocks hold");
    return wrong;
}
