/* Children that finalize without disconnecting do not keep their parents in MPI_Comm_disconnect, before or after; nor the other way round. */
#include "t.h"
int main(int argc, char **argv) {
    MPI_Comm parent, inter, merged;
    int v = 0;
    t_begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        /* 'l': leaves at once; 'd': disconnects; 'w': waits for a word first, and leaves; 'm': merges, and leaves. */
        char how = argv[1][0];
        if (how == 'm') MPI_Intercomm_merge(parent, 1, &merged);
        if (how == 'w') MPI_Recv(&v, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
        if (how == 'd') MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    for (int round = 0; round < 5; round++) {
        char how[2] = {"ldwlm"[round], 0}, *args[] = {how, NULL};
        MPI_Comm_spawn(argv[0], args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        if (*how == 'm') MPI_Intercomm_merge(inter, 0, &merged), MPI_Comm_disconnect(&merged);
        /* Once before the children leave, once after. */
        double until = MPI_Wtime() + (round == 3 ? 0.3 : 0);
        while (MPI_Wtime() < until) {}
        if (*how == 'w' && t_rank == 0) for (int r = 0; r < 2; r++) MPI_Send(&v, 1, MPI_INT, r, 1, inter);
        if (round == 0 && argc > 1) continue; /* the parents leave without */
        MPI_Comm_disconnect(&inter);
        OK(inter == MPI_COMM_NULL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return t_end();
}
