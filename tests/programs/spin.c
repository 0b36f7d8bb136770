/* Waits that never block in MPI: spinning on Iprobe, on Test, on a file, on a pipe between ranks' helpers. They must end
 * under any V, as they do under time-sharing. */
#include "t.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int flag, v = -1, next = (t_rank + 1) % t_size, prev = (t_rank + t_size - 1) % t_size;
    MPI_Request q;
    PART("everybody spins on Iprobe for the one before");
    if (t_rank == 0) MPI_Send(&v, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
    do MPI_Iprobe(prev, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    while (!flag);
    MPI_Recv(&v, 1, MPI_INT, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (t_rank) MPI_Send(&v, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
    PART("everybody spins on Test");
    MPI_Irecv(&v, 1, MPI_INT, prev, 2, MPI_COMM_WORLD, &q);
    if (t_rank == 0) MPI_Send(&t_rank, 1, MPI_INT, next, 2, MPI_COMM_WORLD);
    do MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
    while (!flag);
    EQ(v, prev);
    if (t_rank) MPI_Send(&t_rank, 1, MPI_INT, next, 2, MPI_COMM_WORLD);
    PART("rank by rank through a file, without MPI");
    char path[256];
    if (t_rank == 0) {
        sprintf(path, "%s/vmpi-spin-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
        unlink(path);
    }
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (;;) { /* my turn when the file has as many bytes as my rank; the last rank goes first in world order of its core */
        int fd = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
        if (lseek(fd, 0, SEEK_END) == t_size - 1 - t_rank) {
            OK(write(fd, "x", 1) == 1);
            close(fd);
            break;
        }
        close(fd);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (t_rank == 0) unlink(path);
    PART("computing longer than the quantum: the process-POV clock never goes back, whoever has the core");
    double (*rtime)(void) = (double (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Rtime");
    double end = MPI_Wtime() + 0.3, clock = 0;
    while (MPI_Wtime() < end)
        if (rtime) {
            double now = rtime();
            OK(now >= clock);
            clock = now;
        }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rtime) OK(rtime() >= clock);
    say("spun");
    return t_end();
}
