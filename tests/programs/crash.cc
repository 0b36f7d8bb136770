// Deaths of C++ programs: an exception that nobody catches, a vector read beyond its end, a virtual function called too late.
#include <mpi.h>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

[[gnu::noinline]] static void refuse(int value) {
    if (value >= 0) throw std::runtime_error("no such value: " + std::to_string(value));
}

[[gnu::noinline]] static int beyond(const std::vector<int> &values, std::size_t at) { return values.at(at); }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == std::atoi(argv[2])) {
        if (!std::strcmp(argv[1], "throw")) refuse(4);
        if (!std::strcmp(argv[1], "range")) return beyond({1, 2, 3}, 7);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
