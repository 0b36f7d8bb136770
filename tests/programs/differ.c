/* What MPI's text forbids or leaves open, and MPICH and Open MPI treat differently: each face does as its library. */
#include "t.h"

static const char *verdict(int error) {
    int class;
    MPI_Error_class(error, &class);
    return class == MPI_SUCCESS ? "taken" : class == MPI_ERR_OP ? "MPI_ERR_OP" : class == MPI_ERR_TYPE ? "MPI_ERR_TYPE" : "another error";
}

static void hint(const char *what, MPI_Comm comm, const char *key) {
    MPI_Info info;
    char value[100] = "";
    int flag;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get(info, key, 99, value, &flag);
    say("%s: %s is %s", what, key, flag ? value : "not told");
    MPI_Info_free(&info);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    say("logical operations on real numbers");
    /* MPICH takes MPI_LAND and MPI_LOR, too, and then fails an assertion. */
    struct { MPI_Op op; const char *name; } ops[] = {{MPI_LXOR, "MPI_LXOR"}, {MPI_BAND, "MPI_BAND"}};
    for (int i = 0; i < 2; i++) {
        float f[4] = {0, -0.0f, 2.5f, t_rank}, g[4];
        double d[4] = {0, -0.0, 1e-300, t_rank}, e[4];
        long double l[4] = {0, -0.0L, -1e-3000L, t_rank}, m[4];
        int error = MPI_Allreduce(f, g, 4, MPI_FLOAT, ops[i].op, MPI_COMM_WORLD);
        say("%s on MPI_FLOAT: %s", ops[i].name, verdict(error));
        if (!error) say("%g %g %g %g", g[0], g[1], g[2], g[3]);
        error = MPI_Allreduce(d, e, 4, MPI_DOUBLE, ops[i].op, MPI_COMM_WORLD);
        say("%s on MPI_DOUBLE: %s", ops[i].name, verdict(error));
        if (!error) say("%g %g %g %g", e[0], e[1], e[2], e[3]);
        error = MPI_Allreduce(l, m, 4, MPI_LONG_DOUBLE, ops[i].op, MPI_COMM_WORLD);
        say("%s on MPI_LONG_DOUBLE: %s", ops[i].name, verdict(error));
        if (!error) say("%Lg %Lg %Lg %Lg", m[0], m[1], m[2], m[3]);
    }

    say("characters and bytes as numbers");
    for (int i = 0; i < 3; i++) {
        unsigned char in[2] = {0x90, 5}, inout[2] = {0x10, 9};
        MPI_Datatype type = (MPI_Datatype[]){MPI_CHARACTER, MPI_CHAR, MPI_BYTE}[i];
        const char *name = (const char *[]){"MPI_CHARACTER", "MPI_CHAR", "MPI_BYTE"}[i];
        int error = MPI_Reduce_local(in, inout, 2, type, MPI_MAX);
        say("MPI_MAX on %s: %s, %02x %02x", name, verdict(error), inout[0], inout[1]);
        error = MPI_Reduce_local(in, inout, 2, type, MPI_SUM);
        say("MPI_SUM on %s: %s, %02x %02x", name, verdict(error), inout[0], inout[1]);
        error = MPI_Reduce_local(in, inout, 2, type, MPI_LAND);
        say("MPI_LAND on %s: %s, %02x %02x", name, verdict(error), inout[0], inout[1]);
    }
    if (t_size > 1) { /* Debian's Open MPI makes no windows for one rank. */
        unsigned char in = 0x90, *memory;
        MPI_Win window;
        MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
        *memory = 0x10;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_rank, 0, window);
        int error = MPI_Accumulate(&in, 1, MPI_BYTE, t_rank, 0, 1, MPI_BYTE, MPI_SUM, window);
        MPI_Win_unlock(t_rank, window);
        say("accumulating bytes: %s, %02x", verdict(error), *memory);
        MPI_Win_free(&window);
    }

    say("no elements of MPI_DATATYPE_NULL");
    say("MPI_Send: %s", verdict(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD)));
    say("MPI_Recv: %s", verdict(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
    say("MPI_Send of one: %s", verdict(MPI_Send(&t_rank, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD)));

    say("hints");
    MPI_Info info;
    MPI_Comm a, b;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_allow_overtaking", "true");
    MPI_Info_set(info, "nobody_knows_this_one", "true");
    hint("MPI_COMM_WORLD", MPI_COMM_WORLD, "mpi_assert_allow_overtaking");
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_set_info(a, info);
    hint("MPI_Comm_set_info", a, "mpi_assert_allow_overtaking");
    hint("MPI_Comm_set_info", a, "nobody_knows_this_one");
    MPI_Comm_dup(a, &b);
    hint("MPI_Comm_dup", b, "mpi_assert_allow_overtaking");
    MPI_Comm_free(&b);
    MPI_Comm_split_type(a, MPI_COMM_TYPE_SHARED, 0, info, &b);
    hint("MPI_Comm_split_type", b, "mpi_assert_allow_overtaking");
    MPI_Comm_free(&b);
    MPI_Comm_split(a, 0, 0, &b);
    hint("MPI_Comm_split", b, "mpi_assert_allow_overtaking");
    MPI_Comm_free(&b), MPI_Comm_free(&a), MPI_Info_free(&info);
    return t_end();
}
