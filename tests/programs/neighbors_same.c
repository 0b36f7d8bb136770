/* Neighbourhood exchanges where several edges lead to one process: periodic dimensions of size 1 and 2. What leaves in the
 * negative direction of a dimension arrives from the positive one (MPI 4.1, 8.6, example 8.10; errata to MPI 3.1), in all
 * forms of the call. The real libraries of Debian 12 pair in order in some of them, hence STRICT. */
#include "t.h"
enum { DIMS = 3, SLOTS = 2 * DIMS };
static void fill(int *out, int *in) {
    for (int i = 0; i < 2 * SLOTS; i++) in[i] = -1, out[i] = 1000 * t_rank + i;
}
/* Block s of each neighbour's send buffer that faces us is s ^ 1 of ours. */
static void check(const int *in, const int *neighbour, const char *what) {
    for (int s = 0; s < SLOTS; s++)
        for (int i = 0; i < 2; i++)
            if (neighbour[s] == MPI_PROC_NULL) STRICT(in[2 * s + i] == -1);
            else if (!STRICT(in[2 * s + i] == 1000 * neighbour[s] + 2 * (s ^ 1) + i)) fprintf(stderr, "%s: block %d\n", what, s);
}
static void grid(int *dims, int *periods) {
    MPI_Comm c;
    MPI_Cart_create(MPI_COMM_WORLD, DIMS, dims, periods, 0, &c);
    if (c == MPI_COMM_NULL) return;
    int out[2 * SLOTS], in[2 * SLOTS], neighbour[SLOTS], counts[SLOTS], at[SLOTS];
    MPI_Aint bytes[SLOTS];
    MPI_Datatype types[SLOTS];
    for (int d = 0; d < DIMS; d++) MPI_Cart_shift(c, d, 1, &neighbour[2 * d], &neighbour[2 * d + 1]);
    for (int s = 0; s < SLOTS; s++) counts[s] = 2, at[s] = 2 * s, bytes[s] = 8 * s, types[s] = MPI_INT;
    MPI_Request q;
    fill(out, in);
    MPI_Neighbor_alltoall(out, 2, MPI_INT, in, 2, MPI_INT, c);
    check(in, neighbour, "alltoall");
    fill(out, in);
    MPI_Neighbor_alltoallv(out, counts, at, MPI_INT, in, counts, at, MPI_INT, c);
    check(in, neighbour, "alltoallv");
    fill(out, in);
    MPI_Neighbor_alltoallw(out, counts, bytes, types, in, counts, bytes, types, c);
    check(in, neighbour, "alltoallw");
    fill(out, in);
    MPI_Ineighbor_alltoall(out, 2, MPI_INT, in, 2, MPI_INT, c, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    check(in, neighbour, "ialltoall");
    fill(out, in);
    MPI_Ineighbor_alltoallv(out, counts, at, MPI_INT, in, counts, at, MPI_INT, c, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    check(in, neighbour, "ialltoallv");
    fill(out, in);
    MPI_Ineighbor_alltoallw(out, counts, bytes, types, in, counts, bytes, types, c, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    check(in, neighbour, "ialltoallw");
    MPI_Comm_free(&c);
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int shapes[][DIMS] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 4}, {2, 2, 1}, {4, 1, 1}};
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
        for (int mask = 0; mask < 8; mask++) {
            int periods[DIMS] = {mask & 1, mask >> 1 & 1, mask >> 2 & 1};
            if (shapes[i][0] * shapes[i][1] * shapes[i][2] <= t_size) grid(shapes[i], periods);
        }
    /* A graph with two edges each way between the same two processes pairs the k-th with the k-th. */
    int twice[2] = {(t_rank + t_size - 1) % t_size, (t_rank + t_size - 1) % t_size}, to[2] = {(t_rank + 1) % t_size, (t_rank + 1) % t_size};
    MPI_Comm g;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, twice, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g);
    int out[2] = {10 * t_rank, 10 * t_rank + 1}, in[2] = {-1, -1};
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, g);
    STRICT(in[0] == 10 * twice[0] && in[1] == 10 * twice[0] + 1);
    MPI_Comm_free(&g);
    say("paired");
    return t_end();
}
