/* MPI_Win_shared_query of memory that MPI_Win_allocate gave (MPI 4.1): that of ranks on this node can be loaded and stored,
 * that of other nodes is nothing. Open MPI 4.1 and MPICH 4.0 have an error for it. */
#include "t.h"

/* What is to be had of rank `r`; the address is what it must be. */
static void query(MPI_Win win, int r, MPI_Aint want, int unit, char **at) {
    MPI_Aint bytes = -7;
    int du = -7;
    *at = (char *)&bytes;
    EQ(MPI_Win_shared_query(win, r, &bytes, &du, at), MPI_SUCCESS);
    EQ(bytes, want);
    EQ(du, unit);
    if (!want) OK(*at == NULL);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm node;
    int on_node, first = -1;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &on_node);
    int mates[on_node], near[t_size];
    MPI_Allgather(&t_rank, 1, MPI_INT, mates, 1, MPI_INT, node);
    memset(near, 0, sizeof near);
    for (int i = 0; i < on_node; i++) near[mates[i]] = 1;
    for (int r = t_size - 1; r > 0; r--)
        if (near[r]) first = r;

    PART("allocated: rank 0 has nothing");
    MPI_Win win;
    char *mine, *theirs;
    MPI_Win_allocate(100 * t_rank, t_rank + 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    memset(mine, t_rank, 100 * t_rank);
    MPI_Win_fence(0, win);
    for (int r = 1; r < t_size; r++) {
        query(win, r, near[r] ? 100 * r : 0, near[r] ? r + 1 : 0, &theirs);
        if (near[r]) OK(theirs[0] == r && theirs[100 * r - 1] == r);
        if (r == t_rank) OK(theirs == mine);
    }
    query(win, MPI_PROC_NULL, first < 0 ? 0 : 100 * first, first < 0 ? 0 : first + 1, &theirs);
    if (first > 0) EQ(theirs[0], first);
    /* The next on this node sees what was stored. */
    MPI_Win_fence(0, win);
    int node_rank;
    MPI_Comm_rank(node, &node_rank);
    int next = mates[(node_rank + 1) % on_node];
    if (next > 0) query(win, next, 100 * next, next + 1, &theirs), theirs[7] = 50 + t_rank;
    MPI_Win_fence(0, win);
    if (t_rank > 0) EQ(mine[7], 50 + mates[(node_rank + on_node - 1) % on_node]);
    MPI_Win_free(&win);

    PART("nobody has anything");
    MPI_Win_allocate(0, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    query(win, MPI_PROC_NULL, 0, 0, &theirs);
    MPI_Win_free(&win);

    PART("brought: each has its own");
    char own[64];
    MPI_Win_create(own, sizeof own, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int r = 0; r < t_size; r++) {
        query(win, r, r == t_rank ? sizeof own : 0, r == t_rank ? 8 : 0, &theirs);
        if (r == t_rank) OK(theirs == own);
    }
    query(win, MPI_PROC_NULL, 0, 0, &theirs);
    MPI_Win_free(&win);

    PART("dynamic: an error");
    MPI_Aint bytes;
    int du, class;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Win_shared_query(win, 0, &bytes, &du, &theirs), &class);
    EQ(class, MPI_ERR_RMA_FLAVOR);
    MPI_Win_free(&win);
    MPI_Comm_free(&node);
    return t_end();
}
