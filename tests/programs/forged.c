/* A rank that writes another process's number (its vmpid's) wherever its own stands in the node's shared memory, and with "all" lets it show what that one
 * shows, too. A large message from another node, for an address that both have, must not get there. "drop": it gives up root's rights first. */
#define _GNU_SOURCE
#include "t.h"
#include <sys/mman.h>
#include <unistd.h>

static int has(int count, char **words, const char *word) {
    for (int i = 1; i < count; i++)
        if (!strcmp(words[i], word)) return 1;
    return 0;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int last = t_size - 1, all = has(argc, argv, "all"), own = getpid(), other = getppid();
    unsigned long bytes = 0, first = 0, from, to, shows = 0;
    char line[512], name[64];
    unsigned char *at = NULL;
    if (t_rank == 0) {
        sprintf(name, "/proc/%d/maps", other);
        FILE *maps = fopen(name, "r");
        if (!OK(maps != NULL)) MPI_Abort(MPI_COMM_WORLD, 9);
        while (fgets(line, sizeof line, maps)) {
            sscanf(line, "%lx-%lx", &from, &to);
            if (strstr(line, "/vmpid") && !first) first = from;
            if (strstr(line, "[heap]")) shows = from, bytes = to - from;
        }
        fclose(maps);
        at = mmap((void *)shows, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        OK(at == (void *)shows && first);
        if (has(argc, argv, "drop")) OK(!setgid(65534) && !setuid(65534));
        int written = 0, sealed = 0;
        maps = fopen("/proc/self/maps", "r");
        while (fgets(line, sizeof line, maps)) {
            sscanf(line, "%lx-%lx", &from, &to);
            if (strstr(line, "memfd:vmpi-pids")) sealed += mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) != 0;
            if (!strstr(line, "memfd:vmpi-node") || !strstr(line, "rw-s")) continue;
            for (volatile int32_t *word = (void *)from; (unsigned long)word < to; word++)
                if (*word == own) {
                    *word = other, written++;
                    if (all && ((unsigned long)word - from) % 64 == 16) {
                        memcpy((void *)(word - 4), "\177ELF\2\1\1\0", 8);
                        memcpy((void *)(word - 2), &first, 8);
                    }
                }
        }
        fclose(maps);
        OK(written > 1);
        EQ(sealed, 1);
    }
    MPI_Bcast(&bytes, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    if (t_rank == last) {
        unsigned char *data = malloc(bytes);
        t_fill(data, bytes, last, 5);
        MPI_Request sent;
        MPI_Isend(data, (int)bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &sent);
        if (all) sleep(30);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
    } else if (t_rank == 0) {
        MPI_Request request;
        int done = 0;
        MPI_Irecv(at, (int)bytes, MPI_BYTE, last, 5, MPI_COMM_WORLD, &request);
        if (all) {
            /* Where nobody finds it, a rank need not get what is sent to it. */
            for (int turn = 0; turn < 150 && !done; turn++, usleep(10000)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            MPI_Abort(MPI_COMM_WORLD, t_failures ? 9 : 77);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EQ(t_wrong(at, bytes, last, 5), -1);
    }
    return t_end();
}
