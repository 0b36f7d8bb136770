/* A rank in a PID namespace of its own has a process beside it with the number by which the daemon knows another rank, with the
 * same environment, of the same group, with memory at the same addresses. Messages of all sizes, and windows, must not reach it. Rank 0 lives where the daemon
 * does. "no decoy" if the kernel does not let one have a number of its choice. */
#define _GNU_SOURCE
#include "t.h"
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4 << 20 };

/* A child with this number, a copy of this process; 0 if it cannot be. */
static pid_t decoy(pid_t number) {
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1};
    long child = syscall(SYS_clone3, &args, sizeof args);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
    }
    return child < 0 ? 0 : child;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    unsigned char *shared_place = mmap((void *)0x200000000000, MOST, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    OK(shared_place == (void *)0x200000000000);
    memset(shared_place, 0x55, MOST);
    int number = getpid(), peer = 1 - t_rank, made = 1;
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    pid_t child = 0;
    if (t_rank == 1) made = (child = decoy(number)) != 0;
    MPI_Bcast(&made, 1, MPI_INT, 1, MPI_COMM_WORLD);
    for (int bytes = 8; bytes <= MOST; bytes *= 4)
        for (int round = 0; round < 6; round++) {
            /* The receiver waits for it, or finds it there. */
            if (t_rank == round % 2) {
                t_fill(shared_place, bytes, t_rank, round);
                if (round % 3 == 0) usleep(2000);
                MPI_Send(shared_place, bytes, MPI_BYTE, peer, round, MPI_COMM_WORLD);
            } else {
                memset(shared_place, 0, bytes);
                if (round % 3 == 1) usleep(2000);
                MPI_Recv(shared_place, bytes, MPI_BYTE, peer, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                EQ(t_wrong(shared_place, bytes, peer, round), -1);
            }
        }
    MPI_Win win;
    memset(shared_place, 0, MOST);
    MPI_Win_create(shared_place, MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    int told = 100 + t_rank, got = -1;
    MPI_Win_fence(0, win);
    MPI_Put(&told, 1, MPI_INT, peer, 1000, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    EQ(*(int *)(shared_place + 1000), 100 + peer);
    MPI_Get(&got, 1, MPI_INT, peer, 1000, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    EQ(got, told);
    MPI_Win_free(&win);
    if (child) kill(child, SIGKILL), waitpid(child, NULL, 0);
    say(made ? "decoy" : "no decoy");
    return t_end();
}
