#!/bin/sh
# SimGrid 3.32 (Debian 12's libsimgrid-dev 3.32-2+b2, which must be installed; no root).
# Two ranks on one host of two cores. Expected: memory, or some loopback, such as the 10 GBps without latency that a zone routing="Full"
# has where no route from a host to itself is given. Seen in a <cluster> without loopback_bw: the message leaves by the host's own
# network link and comes back by it, 40 us for a byte, as long as to another host, and it takes bandwidth from what the host sends
# elsewhere (1 MiB to another host: 1.35 ms alone, 2.52 ms beside 1 MiB within the host). Whoever fills the cores of a <cluster>
# simulates memory as slow as the network unless the file has loopback_bw and loopback_lat.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
cd "$d"
cat > p.c <<'P'
#include <mpi.h>
#include <stdio.h>
int main(int c, char **v) {
    int rank;
    char byte = 0;
    MPI_Init(&c, &v);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begin = MPI_Wtime();
    if (rank == 0) MPI_Send(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) printf("%.1f us\n", (MPI_Wtime() - begin) * 1e6);
    MPI_Finalize();
}
P
head='<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
cluster='<cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" core="2" bw="1GBps" lat="10us"'
printf '%s\n' "$head" "<platform version=\"4.1\">$cluster/></platform>" > cluster.xml
printf '%s\n' "$head" "<platform version=\"4.1\">$cluster loopback_bw=\"10GBps\" loopback_lat=\"0\"/></platform>" > loopback.xml
cat > zone.xml <<'P'
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full"><host id="n0" speed="1Gf" core="2"/><host id="n1" speed="1Gf" core="2"/>
<link id="l" bandwidth="1GBps" latency="20us"/><route src="n0" dst="n1"><link_ctn id="l"/></route></zone></platform>
P
printf 'n0\nn0\n' > one; printf 'n0\nn1\n' > two
smpirun -version | head -n 1
smpicc -o p p.c
for case in cluster:two cluster:one loopback:one zone:one; do
    told=$(smpirun -np 2 -hostfile "${case#*:}" -platform "${case%:*}.xml" --cfg=smpi/simulate-computation:no ./p 2> said)
    echo "${case%:*}, ${case#*:} host(s): $told"
done | tee seen
printf '%s\n' "cluster, two host(s): 40.3 us" "cluster, one host(s): 40.3 us" "loopback, one host(s): 0.0 us" "zone, one host(s): 0.0 us" | cmp - seen
