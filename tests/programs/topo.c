/* Cartesian, graph and distributed graph topologies, and neighbourhood collectives on them. */
#include "t.h"
static void cart(int dims0, int dims1, int p0, int p1) {
    MPI_Comm c, row;
    int dims[2] = {dims0, dims1}, periods[2] = {p0, p1}, coords[2], back, rank, nd, status, up, down, left, right;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &c);
    OK((c == MPI_COMM_NULL) == (t_rank >= dims0 * dims1));
    if (c == MPI_COMM_NULL) return;
    MPI_Topo_test(c, &status);
    EQ(status, MPI_CART);
    MPI_Comm_rank(c, &rank);
    MPI_Cartdim_get(c, &nd);
    EQ(nd, 2);
    MPI_Cart_coords(c, rank, 2, coords);
    MPI_Cart_rank(c, coords, &back);
    EQ(back, rank);
    if (p0) {
        int beyond[2] = {coords[0] + 3 * dims0, coords[1]};
        MPI_Cart_rank(c, beyond, &back);
        EQ(back, rank);
    }
    MPI_Cart_shift(c, 0, 1, &up, &down), MPI_Cart_shift(c, 1, -2, &left, &right);
#define NAME(r) ((r) == MPI_PROC_NULL ? -1 : (r))
    say("%dx%d periodic %d %d: at %d,%d shifts %d %d, %d %d", dims0, dims1, p0, p1, coords[0], coords[1], NAME(up), NAME(down), NAME(left), NAME(right));
    int dd[2], pp[2], cc[2];
    MPI_Cart_get(c, 2, dd, pp, cc);
    OK(dd[0] == dims0 && dd[1] == dims1 && !pp[0] == !p0 && !pp[1] == !p1 && cc[1] == coords[1]);
    int remain[2] = {0, 1}, sum = 0, size;
    MPI_Cart_sub(c, remain, &row);
    MPI_Comm_size(row, &size);
    EQ(size, dims1);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, row);
    EQ(sum, coords[0] * dims1 * dims1 + dims1 * (dims1 - 1) / 2);

    PART("neighbourhood collectives on the grid");
    /* Where both neighbours of a dimension are one process, the standard pairs the directions, and peers pair in order. */
    int clear = !(p0 && dims0 <= 2) && !(p1 && dims1 <= 2);
    int in[8], out[8];
    for (int i = 0; i < 8; i++) in[i] = -9, out[i] = rank * 10 + i;
    MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, c);
    say("allgather %d %d %d %d", in[0], in[1], in[2], in[3]);
    for (int i = 0; i < 8; i++) in[i] = -9;
    MPI_Neighbor_alltoall(out, 2, MPI_INT, in, 2, MPI_INT, c);
    say("alltoall %d %d %d %d", in[0], in[2], in[4], in[7]);
    int same[4] = {2, 2, 2, 2}, at[4] = {0, 2, 4, 6};
    MPI_Request q;
    for (int i = 0; i < 8; i++) in[i] = -9;
    MPI_Ineighbor_alltoallv(out, same, at, MPI_INT, in, same, at, MPI_INT, c, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    if (clear) say("alltoallv %d %d %d %d", in[1], in[3], in[5], in[6]);
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    MPI_Aint bytes[4] = {0, 8, 16, 24};
    for (int i = 0; i < 8; i++) in[i] = -9;
    MPI_Neighbor_alltoallw(out, same, bytes, types, in, same, bytes, types, c);
    if (clear) say("alltoallw %d %d %d %d", in[1], in[3], in[5], in[6]);
    MPI_Neighbor_allgatherv(out, 2, MPI_INT, in, same, at, MPI_INT, c);
    say("allgatherv %d %d %d %d", in[1], in[3], in[5], in[6]);
    MPI_Comm_free(&row), MPI_Comm_free(&c);
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    PART("dims_create");
    const int nodes[] = {1, 2, 6, 12, 30, 64, 100, 7, 210};
    for (int i = 0; i < 9; i++) {
        int d[3] = {0, 0, 0}, e[2] = {0, 0};
        MPI_Dims_create(nodes[i], 3, d), MPI_Dims_create(nodes[i], 2, e);
        OK(d[0] * d[1] * d[2] == nodes[i] && d[0] >= d[1] && d[1] >= d[2] && e[0] * e[1] == nodes[i] && e[0] >= e[1]);
    }
    int fixed[3] = {0, 3, 0};
    MPI_Dims_create(12, 3, fixed);
    OK(fixed[0] == 2 && fixed[1] == 3 && fixed[2] == 2);
    PART("cartesian");
    cart(t_size / 2 ? t_size / 2 : 1, t_size > 1 ? 2 : 1, 1, 0);
    cart(1, t_size, 0, 1);
    cart(t_size, 1, 1, 1);
    MPI_Comm c;
    PART("graph: a star");
    int index[t_size], edges[2 * t_size], k = 0, count, status, nn, ne, mine[t_size];
    for (int r = 0; r < t_size; r++) {
        if (r == 0) for (int o = 1; o < t_size; o++) edges[k++] = o;
        else edges[k++] = 0;
        index[r] = k;
    }
    MPI_Graph_create(MPI_COMM_WORLD, t_size, index, edges, 0, &c);
    MPI_Topo_test(c, &status);
    EQ(status, MPI_GRAPH);
    MPI_Graphdims_get(c, &nn, &ne);
    OK(nn == t_size && ne == 2 * (t_size - 1));
    MPI_Graph_neighbors_count(c, t_rank, &count);
    EQ(count, t_rank ? 1 : t_size - 1);
    MPI_Graph_neighbors(c, t_rank, count, mine);
    int in[t_size + 1], out = t_rank + 7;
    MPI_Neighbor_allgather(&out, 1, MPI_INT, in, 1, MPI_INT, c);
    for (int i = 0; i < count; i++) EQ(in[i], mine[i] + 7);
    MPI_Comm_free(&c);
    PART("distributed graph: everyone to the two next");
    int sources[2] = {(t_rank + t_size - 1) % t_size, (t_rank + t_size - 2 + t_size) % t_size}, targets[2] = {(t_rank + 1) % t_size, (t_rank + 2) % t_size};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, targets, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c);
    MPI_Topo_test(c, &status);
    EQ(status, MPI_DIST_GRAPH);
    int indegree, outdegree, weighted, s[2], d[2];
    MPI_Dist_graph_neighbors_count(c, &indegree, &outdegree, &weighted);
    OK(indegree == 2 && outdegree == 2 && !weighted);
    MPI_Dist_graph_neighbors(c, 2, s, MPI_UNWEIGHTED, 2, d, MPI_UNWEIGHTED);
    OK(s[0] == sources[0] && s[1] == sources[1] && d[0] == targets[0] && d[1] == targets[1]);
    int two[2] = {t_rank * 2, t_rank * 2 + 1}, got[2];
    MPI_Neighbor_alltoall(two, 1, MPI_INT, got, 1, MPI_INT, c);
    OK(got[0] == sources[0] * 2 && got[1] == sources[1] * 2 + 1);
    MPI_Request q;
    MPI_Ineighbor_allgather(two, 1, MPI_INT, got, 1, MPI_INT, c, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    OK(got[0] == sources[0] * 2 && got[1] == sources[1] * 2);
    MPI_Comm_free(&c);
    PART("distributed graph given by one rank");
    int all[t_size], degrees[t_size], weights[t_size];
    for (int r = 0; r < t_size; r++) all[r] = r, degrees[r] = 1, weights[r] = 5 + r;
    int next[t_size];
    for (int r = 0; r < t_size; r++) next[r] = (r + 1) % t_size;
    MPI_Dist_graph_create(MPI_COMM_WORLD, t_rank ? 0 : t_size, all, degrees, next, weights, MPI_INFO_NULL, 0, &c);
    MPI_Dist_graph_neighbors_count(c, &indegree, &outdegree, &weighted);
    OK(indegree == 1 && outdegree == 1 && weighted);
    int sw, dw;
    MPI_Dist_graph_neighbors(c, 1, s, &sw, 1, d, &dw);
    OK(s[0] == (t_rank + t_size - 1) % t_size && d[0] == (t_rank + 1) % t_size && dw == 5 + t_rank && sw == 5 + s[0]);
    MPI_Comm_free(&c);
    return t_end();
}
