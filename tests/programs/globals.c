/* A legacy code: its state lives in globals, statics and thread-locals, which ranks must not share. */
#include "t.h"
int counter = 5;
static double table[1000];
static const char *name = "nobody";
_Thread_local long mine = 9;
extern int in_other_place;
int in_other_place = 77;
static int next_id(void) {
    static int id;
    return ++id;
}
static void step(int round) {
    counter += t_rank;
    mine *= 3;
    for (int i = 0; i < 1000; i++) table[i] += t_rank * 0.5 + round;
    for (int i = 0; i < t_rank; i++) next_id();
}
int main(int argc, char **argv) {
    static char buffer[64];
    t_begin(&argc, &argv);
    sprintf(buffer, "rank-%d", t_rank);
    name = buffer;
    in_other_place += t_rank;
    for (int round = 0; round < 10; round++) {
        step(round);
        int previous = (t_rank + t_size - 1) % t_size, theirs;
        MPI_Sendrecv(&counter, 1, MPI_INT, (t_rank + 1) % t_size, 0, &theirs, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EQ(theirs, 5 + previous * (round + 1));
        EQ(counter, 5 + t_rank * (round + 1));
    }
    EQ(mine, 9 * 59049);
    EQ(next_id(), 10 * t_rank + 1);
    say("%s counter %d, table %.1f, other %d, arguments %d", name, counter, table[999], in_other_place, argc);
    return t_end();
}
