/* The C++ bindings that MPI 3 removed: messages, objects, and C++ functions that MPI calls. */
#include <mpi.h>
#include <cstdio>
#include <cstdlib>
static void larger(const void *in, void *io, int len, const MPI::Datatype &t) {
    const int *a = (const int *)in; int *b = (int *)io;
    for (int i = 0; i < len; i++) if (a[i] > b[i]) b[i] = a[i];
}
static int handled, dropped;
static void on_error(MPI::Comm &c, int *code, ...) { handled++; }
static int copy(const MPI::Comm &c, int key, void *extra, void *in, void *out, bool &flag) { *(void **)out = (char *)in + 1; flag = true; return MPI_SUCCESS; }
static int drop(MPI::Comm &c, int key, void *v, void *extra) { dropped++; return MPI_SUCCESS; }
int main(int argc, char **argv) {
    MPI::Init(argc, argv);
    int me = MPI::COMM_WORLD.Get_rank(), np = MPI::COMM_WORLD.Get_size(), bad = 0;
    int next = (me + 1) % np, prev = (me + np - 1) % np, got = -1, sum = 0, most = 0;
    MPI::Request r = MPI::COMM_WORLD.Irecv(&got, 1, MPI::INT, prev, 3);
    MPI::COMM_WORLD.Send(&me, 1, MPI::INT, next, 3);
    MPI::Status s; r.Wait(s);
    bad += got != prev || s.Get_source() != prev || s.Get_count(MPI::INT) != 1;
    MPI::COMM_WORLD.Allreduce(&me, &sum, 1, MPI::INT, MPI::SUM);
    bad += sum != np * (np - 1) / 2;
    MPI::Intracomm half = MPI::COMM_WORLD.Split(me % 2, me);
    bad += half.Get_size() != (np + 1 - me % 2) / 2;
    half.Free();
    MPI::Datatype t = MPI::DOUBLE.Create_vector(2, 1, 2); t.Commit();
    bad += t.Get_size() != 16; t.Free();
    bool periods[1] = {true}; int dims[1] = {np};
    MPI::Cartcomm cart = MPI::COMM_WORLD.Create_cart(1, dims, periods, false);
    bad += cart.Get_dim() != 1; cart.Free();
    {
        MPI::Op op; op.Init(larger, true);
        MPI::COMM_WORLD.Allreduce(&me, &most, 1, MPI::INT, op);
        bad += most != np - 1; op.Free();
        MPI::Errhandler eh = MPI::Comm::Create_errhandler(on_error);
        MPI::Intracomm d = MPI::COMM_WORLD.Dup(); d.Set_errhandler(eh);
        d.Send(&me, 1, MPI::INT, np + 5, 0);
        bad += handled != 1; 
        int key = MPI::Comm::Create_keyval(copy, drop, 0);
        d.Set_attr(key, (void *)100);
        MPI::Intracomm e = d.Dup(); void *v = 0;
        bad += !e.Get_attr(key, &v) || v != (void *)101;
        e.Free(); d.Free(); eh.Free();
        bad += dropped != 2;
        MPI::Comm::Free_keyval(key);
    }
    MPI::COMM_WORLD.Reduce(&bad, &sum, 1, MPI::INT, MPI::SUM, 0);
    if (me == 0) printf("ranks %d bad %d\n", np, sum);
    MPI::Finalize();
}
