/* tcp server FIGURE BYTES... | tcp client ADDRESS FIGURE BYTES...: half the round trip over a TCP socket between two processes that look at it without
 * sleeping, us. The server ends with its first client. */
#define BENCH_WITHOUT_MPI
#include "bench.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#define PORT 5571
static void fail(const char *what) {
    perror(what);
    exit(1);
}
static void get(int s, char *to, long bytes) {
    while (bytes > 0) {
        ssize_t n = recv(s, to, bytes, MSG_DONTWAIT);
        if (n == 0) exit(0);
        if (n < 0 && errno != EAGAIN) fail("recv");
        if (n > 0) to += n, bytes -= n;
    }
}
static void put(int s, const char *from, long bytes) {
    while (bytes > 0) {
        ssize_t n = send(s, from, bytes, MSG_NOSIGNAL);
        if (n < 0) fail("send");
        from += n, bytes -= n;
    }
}
int main(int argc, char **argv) {
    int serves = argc > 1 && !strcmp(argv[1], "server"), first = serves ? 3 : 4, one = 1;
    if (argc <= first) return fprintf(stderr, "tcp server FIGURE BYTES... | tcp client ADDRESS FIGURE BYTES...\n"), 2;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (serves) {
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(s, (void *)&at, sizeof at) || listen(s, 1) || (s = accept(s, NULL, NULL)) < 0) fail("server");
    } else {
        at.sin_addr.s_addr = inet_addr(argv[2]);
        for (int i = 0; connect(s, (void *)&at, sizeof at); i++) {
            if (i == 100) fail("connect");
            usleep(20000);
            close(s), s = socket(AF_INET, SOCK_STREAM, 0);
        }
    }
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (int i = first; i < argc; i++) {
        long bytes = atol(argv[i]), times = 1;
        char *buffer = calloc(1, bytes);
        for (;; times *= 2) {
            double start = now_us();
            char more = 1;
            for (long k = 0; k < times; k++) {
                if (!serves) put(s, buffer, bytes);
                get(s, buffer, bytes);
                if (serves) put(s, buffer, bytes);
            }
            double us = now_us() - start;
            if (!serves) more = us < batch_us(), put(s, &more, 1);
            else get(s, &more, 1);
            if (more) continue;
            if (!serves) {
                printf("@ %s %ld %.4f socket\n", argv[3], bytes, us / times / 2);
                if (bytes >= 4096) printf("@ %s_bandwidth %ld %.4f socket\n", argv[3], bytes, bytes * times * 2 / us / 1e3);
            }
            break;
        }
        free(buffer);
    }
    return 0;
}
