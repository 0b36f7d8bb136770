#!/bin/sh
# SimGrid 3.32 (Debian 12's libsimgrid-dev 3.32-2+b2, which must be installed; no root).
# In a simulated program sleep(100) moves virtual time by 100 s in no real time. Expected: every clock of the program tells so. Seen:
# MPI_Wtime, clock_gettime and gettimeofday do, since smpicc makes macros of those names; std::chrono (compiled into libstdc++,
# where no macro comes), time() and clock() tell real time: 0 s. A C++ program that times itself, or ends after "an hour" by
# time(), mixes both times without a word. Who simulates compiled programs must interpose the libraries' calls, time() among them.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
cd "$d"
cat > p.cc <<'P'
#include <mpi.h>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <sys/time.h>
#include <unistd.h>
static double of_timespec() { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec; }
static double of_timeval() { struct timeval t; gettimeofday(&t, nullptr); return t.tv_sec; }
static double of_chrono() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
int main(int c, char **v) {
    MPI_Init(&c, &v);
    double before[] = {MPI_Wtime(), of_timespec(), of_timeval(), of_chrono(), (double)time(nullptr), (double)clock() / CLOCKS_PER_SEC};
    sleep(100);
    double after[] = {MPI_Wtime(), of_timespec(), of_timeval(), of_chrono(), (double)time(nullptr), (double)clock() / CLOCKS_PER_SEC};
    const char *names[] = {"MPI_Wtime", "clock_gettime", "gettimeofday", "std::chrono", "time", "clock"};
    for (int i = 0; i < 6; i++) printf("%s: %s\n", names[i], after[i] - before[i] > 50 ? "virtual" : "real");
    MPI_Finalize();
}
P
cat > p.xml <<'P'
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-0" speed="1Gf" bw="1GBps" lat="10us"/></platform>
P
echo n0 > hosts
smpirun -version | head -n 1
smpicxx -o p p.cc
smpirun -np 1 -hostfile hosts -platform p.xml ./p 2> said | tee seen
printf '%s\n' "MPI_Wtime: virtual" "clock_gettime: virtual" "gettimeofday: virtual" "std::chrono: real" "time: real" "clock: real" | cmp - seen
