/* Ports, accept and connect, published names, MPI_Comm_join. */
#include "t.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static char port[MPI_MAX_PORT_NAME];

static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

/* Sum over both groups of an intercommunicator, by point-to-point with the first rank of the other side and a broadcast. */
static int sum_of_other(MPI_Comm comm, int mine) {
    int sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum;
}

/* The lower part of the world is the server, the upper one the client. */
static void halves(int round) {
    PART("halves");
    int lower = t_rank < (t_size + 1) / 2, rank, size, remote, remote_rank;
    MPI_Comm half, inter, merged;
    MPI_Comm_split(MPI_COMM_WORLD, lower, 0, &half);
    MPI_Comm_rank(half, &rank);
    int root = round % 2 ? 0 : (MPI_Comm_size(half, &size), size - 1), is_root = rank == root;
    /* The port's name goes from the server's root to the client's. */
    char name[MPI_MAX_PORT_NAME] = "";
    int server_root = round % 2 ? 0 : (t_size + 1) / 2 - 1, client_root = round % 2 ? (t_size + 1) / 2 : t_size - 1;
    if (lower && is_root) {
        EQ(t_rank, server_root);
        MPI_Open_port(MPI_INFO_NULL, name);
        OK(strlen(name) > 0 && strlen(name) < MPI_MAX_PORT_NAME);
        MPI_Send(name, MPI_MAX_PORT_NAME, MPI_CHAR, client_root, 1, MPI_COMM_WORLD);
    } else if (!lower && is_root) {
        MPI_Recv(name, MPI_MAX_PORT_NAME, MPI_CHAR, server_root, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (lower) MPI_Comm_accept(name, MPI_INFO_NULL, root, half, &inter);
    else MPI_Comm_connect(name, MPI_INFO_NULL, root, half, &inter);
    if (lower && is_root) MPI_Close_port(name);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Comm_rank(inter, &rank);
    say("halves: %s rank %d, %d and %d, other sum %d", lower ? "server" : "client", rank, size, remote, sum_of_other(inter, t_rank));
    MPI_Intercomm_merge(inter, !lower, &merged);
    MPI_Comm_rank(merged, &remote_rank);
    EQ(remote_rank, t_rank);
    MPI_Comm_free(&merged);
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
    MPI_Comm_free(&half);
}

/* One server accepts every other rank in turn; a nonblocking receive completes while it waits in accept (Open MPI 4 hangs). */
static void many(void) {
    PART("many");
    if (t_size < 2) return;
    MPI_Comm inter;
    int sum = 0, value;
    if (t_rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    int n = 100000, *early = malloc(n * sizeof *early);
    MPI_Request r = MPI_REQUEST_NULL;
    if (t_rank == 0) {
        if (getenv("VMPI_JOBID")) MPI_Irecv(early, n, MPI_INT, t_size - 1, 5, MPI_COMM_WORLD, &r);
        for (int i = 1; i < t_size; i++) {
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
            MPI_Recv(&value, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE);
            sum += value;
            MPI_Comm_disconnect(&inter);
        }
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        STRICT(early[n - 1] == n - 1);
        MPI_Close_port(port);
        say("many: sum %d", sum);
    } else {
        if (t_rank == t_size - 1 && getenv("VMPI_JOBID")) {
            /* Large, so that it needs the receiver, which is in MPI_Comm_accept. */
            for (int i = 0; i < n; i++) early[i] = i;
            MPI_Send(early, n, MPI_INT, 0, 5, MPI_COMM_WORLD);
        }
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        MPI_Send(&t_rank, 1, MPI_INT, 0, 3, inter);
        MPI_Comm_disconnect(&inter);
    }
    free(early);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void names(void) {
    PART("names");
    char service[100], found[MPI_MAX_PORT_NAME] = "";
    sprintf(service, "vmpi-test-%d", t_rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Open_port(MPI_INFO_NULL, port);
    EQ(MPI_Publish_name(service, MPI_INFO_NULL, port), MPI_SUCCESS);
    EQ(MPI_Lookup_name(service, MPI_INFO_NULL, found), MPI_SUCCESS);
    OK(!strcmp(port, found));
    MPI_Barrier(MPI_COMM_WORLD);
    sprintf(service, "vmpi-test-%d", (t_rank + 1) % t_size);
    EQ(MPI_Lookup_name(service, MPI_INFO_NULL, found), MPI_SUCCESS);
    OK(t_size == 1 || strcmp(port, found));
    MPI_Barrier(MPI_COMM_WORLD);
    sprintf(service, "vmpi-test-%d", t_rank);
    EQ(MPI_Unpublish_name(service, MPI_INFO_NULL, port), MPI_SUCCESS);
    STRICT(class_of(MPI_Lookup_name(service, MPI_INFO_NULL, found)) == MPI_ERR_NAME);
    STRICT(class_of(MPI_Unpublish_name(service, MPI_INFO_NULL, port)) == MPI_ERR_SERVICE);
    EQ(MPI_Close_port(port), MPI_SUCCESS);
    MPI_Comm inter = MPI_COMM_WORLD;
    STRICT(class_of(MPI_Close_port(port)) == MPI_ERR_PORT);
    if (getenv("VMPI_JOBID")) {
        OK(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
        OK(class_of(MPI_Comm_accept("nonsense", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)) == MPI_ERR_PORT);
        OK(class_of(MPI_Comm_accept(port, MPI_INFO_NULL, t_size, MPI_COMM_WORLD, &inter)) == MPI_ERR_ROOT);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void join(void) {
    PART("join");
    int peer = t_size - 1;
    if (t_size < 2 || (t_rank != 0 && t_rank != peer)) return;
    int fd = socket(AF_INET, SOCK_STREAM, 0), got = -1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (t_rank == 0) {
        /* An address at which other nodes find this one, if there are any. */
        struct ifaddrs *all = NULL;
        getifaddrs(&all);
        for (struct ifaddrs *i = all; i; i = i->ifa_next)
            if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && !(i->ifa_flags & IFF_LOOPBACK)) address.sin_addr = ((struct sockaddr_in *)i->ifa_addr)->sin_addr;
        if (all) freeifaddrs(all);
        OK(!bind(fd, (void *)&address, sizeof address) && !listen(fd, 1) && !getsockname(fd, (void *)&address, &length));
        MPI_Send(&address, sizeof address, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
        int connected = accept(fd, NULL, NULL);
        close(fd);
        fd = connected;
    } else {
        MPI_Recv(&address, sizeof address, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        OK(!connect(fd, (void *)&address, sizeof address));
    }
    MPI_Comm inter;
    int rank, size, remote, mine = 100 + t_rank;
    EQ(MPI_Comm_join(fd, &inter), MPI_SUCCESS);
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Sendrecv(&mine, 1, MPI_INT, 0, 4, &got, 1, MPI_INT, 0, 4, inter, MPI_STATUS_IGNORE);
    say("join: rank %d, %d and %d, got %d", rank, size, remote, got);
    /* The socket is as before. */
    char byte = (char)t_rank;
    OK(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1 && byte == peer - t_rank);
    MPI_Comm_disconnect(&inter);
    close(fd);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    if (t_size > 1)
        for (int round = 0; round < 3; round++) halves(round);
    many();
    names();
    join();
    return t_end();
}
