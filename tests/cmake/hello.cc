#include <cstdio>
#include <vector>
#include <mpi.h>

int main(int argc, char **argv) {
    int me, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<int> all(size);
    MPI_Gather(&me, 1, MPI_INT, all.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (me == 0) std::printf("C++: %d of %d\n", all.back(), size);
    return MPI_Finalize();
}
