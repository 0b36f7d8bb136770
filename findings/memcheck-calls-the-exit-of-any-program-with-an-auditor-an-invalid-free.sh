#!/bin/sh
# glibc 2.36 and valgrind 3.19 (Debian 12's libc6 2.36-9+deb12u14 and valgrind 1:3.19.0-1, and gcc, which must be installed; no root).
# LD_AUDIT is how tools see each library as it is loaded (HPCToolkit, Spindle). Expected of memcheck: nothing, above
# all with an auditor whose la_version returns 0, which the loader then does without. Seen: an invalid free() at the exit of any program,
# a C main that returns 0 among them, so `--error-exitcode` fails every correct one. With an auditor a second libc comes before the
# program's, the loader's tables are made before malloc is memcheck's, and __libc_freeres, which valgrind calls at exit, frees them
# with memcheck's (`_dl_find_object_freeres`). `--run-libc-freeres=no` cures it; so a launcher may not set LD_AUDIT for what may be valgrind.
# Seen: "no auditor: exit code 0, 0 invalid frees", "an auditor that declines: exit code 9, 1 invalid frees in _dl_find_object_freeres",
# "the same, --run-libc-freeres=no: exit code 0, 0 invalid frees".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
cd "$d"
echo 'unsigned la_version(unsigned version) { return 0; }' > auditor.c
echo 'int main(void) { return 0; }' > nothing.c
cc -shared -fPIC -o auditor.so auditor.c
cc -o nothing nothing.c
ldd --version | head -n 1
valgrind --version
check() { # name, LD_AUDIT, options of valgrind
    code=0
    LD_AUDIT=$2 valgrind -q --error-exitcode=9 $3 ./nothing 2> said || code=$?
    echo "$1: exit code $code, $(grep -c 'Invalid free' said) invalid frees$(grep -om 1 ' _dl_find_object_freeres' said | sed 's/^/ in/')"
}
{
    check "no auditor" "" ""
    check "an auditor that declines" "$d/auditor.so" ""
    check "the same, --run-libc-freeres=no" "$d/auditor.so" --run-libc-freeres=no
} | tee seen
printf '%s\n' "no auditor: exit code 0, 0 invalid frees" \
    "an auditor that declines: exit code 9, 1 invalid frees in _dl_find_object_freeres" \
    "the same, --run-libc-freeres=no: exit code 0, 0 invalid frees" | cmp - seen
