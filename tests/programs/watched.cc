/* As watched.c, in C++: messages into containers, and an exception on the way. */
#include <mpi.h>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static int rank, size;

static std::string passed(const std::string &text)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    unsigned long length = text.size(), theirs;
    MPI_Sendrecv(&length, 1, MPI_UNSIGNED_LONG, right, 1, &theirs, 1, MPI_UNSIGNED_LONG, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::unique_ptr<char[]> room(new char[theirs]);
    MPI_Request request;
    MPI_Irecv(room.get(), (int)theirs, MPI_CHAR, left, 2, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(text.data(), (int)length, MPI_CHAR, right, 2, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return std::string(room.get(), theirs);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, wrong = 0;
    for (size_t length : {5ul, 300ul, 100000ul, 1000000ul})
        wrong += passed(std::string(length + rank, (char)('a' + rank))) != std::string(length + left, (char)('a' + left));
    std::map<int, std::vector<double>> parts;
    for (int peer = 0; peer < size; peer++)
        parts[peer].assign(50000, rank);
    for (auto &part : parts)
        MPI_Bcast(part.second.data(), (int)part.second.size(), MPI_DOUBLE, part.first, MPI_COMM_WORLD);
    for (auto &part : parts)
        for (double value : part.second)
            wrong += value != part.first;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    try {
        int code = MPI_Send(&wrong, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        throw std::runtime_error(std::string(text, length));
    } catch (const std::exception &error) {
        wrong += std::string(error.what()).empty();
    }
    int all;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("%d wrong\n", all);
    MPI_Finalize();
    return 0;
}
