/* As in a container with Docker's default seccomp profile and no capability that opens it up: what that forbids and MPI libraries like to use fails
 * here. seccomped PROGRAM ARGUMENTS */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define FAIL(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define DENY(name, error) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), FAIL(error)
#define PASS(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
int main(int argc, char **argv) {
    struct sock_filter filter[] = {
        LOAD(nr),
        DENY(process_vm_readv, EPERM), DENY(process_vm_writev, EPERM), DENY(ptrace, EPERM), DENY(kcmp, EPERM), DENY(pidfd_getfd, EPERM),
        DENY(perf_event_open, EPERM), DENY(userfaultfd, EPERM), DENY(io_uring_setup, EPERM), DENY(keyctl, EPERM), DENY(bpf, EPERM),
        DENY(unshare, EPERM), DENY(setns, EPERM), DENY(mount, EPERM), DENY(mbind, EPERM), DENY(set_mempolicy, EPERM), DENY(move_pages, EPERM),
        DENY(clone3, ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        LOAD(args[0]),
        PASS(0), PASS(8), PASS(0x20000), PASS(0x20008), PASS(0xffffffff), FAIL(EPERM),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("seccomp");
        return 125;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
