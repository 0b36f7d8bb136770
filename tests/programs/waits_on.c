/* A rank makes every event that vmpid has given it one on which all who read it wait (the open file is shared), rings it and takes the ring back. */
#define _GNU_SOURCE
#include "t.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int changed = 0;
    DIR *all = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(all));) {
        char name[300], kind[64] = "";
        snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
        if (readlink(name, kind, sizeof kind - 1) < 0 || !strstr(kind, "eventfd")) continue;
        int fd = atoi(entry->d_name);
        uint64_t count = 1;
        OK(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
        struct iovec part = {&count, 8};
        /* It may be read by vmpid in between. */
        for (int turn = 0; turn < 20000; turn++, count = 1)
            if (write(fd, &count, 8) != 8 || (preadv2(fd, &part, 1, -1, RWF_NOWAIT) != 8 && errno != EAGAIN)) break;
        if (argc > 1 && t_rank == 0) {
            /* Who rings now waits. */
            count = UINT64_MAX - 1;
            OK(write(fd, &count, 8) == 8);
        }
        changed++;
    }
    closedir(all);
    OK(changed > 0);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(300000);
    return t_end();
}
