/* Predefined operations on every type that allows them, MINLOC and MAXLOC, Op_create, Op_commutative, Reduce_local. */
#include "t.h"
#include <complex.h>
#include <stdbool.h>
static MPI_Comm c;
/* Allreduce of one element per rank, from a function of the rank, against a fold by C's own operator. */
#define FOLD(T, type, op, value, expression) do { \
    T in[3], out[3], want; \
    for (int i = 0; i < 3; i++) { int r = t_rank + i; in[i] = (T)(value); } \
    MPI_Allreduce(in, out, 3, type, op, c); \
    for (int i = 0; i < 3; i++) { \
        { int r = 0 + i; want = (T)(value); } \
        for (int k = 1; k < t_size; k++) { int r = k + i; T a = want, b = (T)(value); want = (T)(expression); } \
        if (!OK(out[i] == want)) fprintf(stderr, "  " #T " " #op "\n"); \
    } \
    checked++; } while (0)
#define ARITHMETIC(T, type) FOLD(T, type, MPI_SUM, r + 1, a + b); FOLD(T, type, MPI_PROD, r % 3 + 1, a * b); \
    FOLD(T, type, MPI_MAX, (r * 5) % 7, a > b ? a : b); FOLD(T, type, MPI_MIN, (r * 5) % 7 + 1, a < b ? a : b)
#define LOGICAL(T, type) FOLD(T, type, MPI_LAND, r % 4, a && b); FOLD(T, type, MPI_LOR, r % 2, a || b); FOLD(T, type, MPI_LXOR, r % 3 == 1, !a != !b)
#define BITWISE(T, type) FOLD(T, type, MPI_BAND, r | 9, a & b); FOLD(T, type, MPI_BOR, r << 1, a | b); FOLD(T, type, MPI_BXOR, r * 3, a ^ b)
#define INTEGER(T, type) ARITHMETIC(T, type); LOGICAL(T, type); BITWISE(T, type)
#define LOCATION(T, type) do { \
    struct { T v; int k; } in = {(T)((t_rank * 3) % 4), t_rank}, big, small, ini, ino; \
    MPI_Allreduce(&in, &big, 1, type, MPI_MAXLOC, c); \
    MPI_Allreduce(&in, &small, 1, type, MPI_MINLOC, c); \
    ini = in, ino = in; \
    for (int r = t_size - 1; r >= 0; r--) { T v = (T)((r * 3) % 4); if (r == t_size - 1 || v >= ini.v) ini.v = v, ini.k = r; if (r == t_size - 1 || v <= ino.v) ino.v = v, ino.k = r; } \
    OK(big.v == ini.v && big.k == ini.k); OK(small.v == ino.v && small.k == ino.k); checked++; } while (0)

static int calls;
static void count_and_add(void *in, void *inout, int *len, MPI_Datatype *type) {
    OK(*type == MPI_INT);
    calls++;
    for (int i = 0; i < *len; i++) ((int *)inout)[i] += ((int *)in)[i];
}
int main(int argc, char **argv) {
    int checked = 0, commute = -1;
    t_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    INTEGER(signed char, MPI_SIGNED_CHAR); INTEGER(unsigned char, MPI_UNSIGNED_CHAR); INTEGER(short, MPI_SHORT); INTEGER(unsigned short, MPI_UNSIGNED_SHORT);
    INTEGER(int, MPI_INT); INTEGER(unsigned, MPI_UNSIGNED); INTEGER(long, MPI_LONG); INTEGER(unsigned long, MPI_UNSIGNED_LONG);
    INTEGER(long long, MPI_LONG_LONG); INTEGER(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    INTEGER(int8_t, MPI_INT8_T); INTEGER(int16_t, MPI_INT16_T); INTEGER(int32_t, MPI_INT32_T); INTEGER(int64_t, MPI_INT64_T);
    INTEGER(uint8_t, MPI_UINT8_T); INTEGER(uint16_t, MPI_UINT16_T); INTEGER(uint32_t, MPI_UINT32_T); INTEGER(uint64_t, MPI_UINT64_T);
    ARITHMETIC(float, MPI_FLOAT); ARITHMETIC(double, MPI_DOUBLE); ARITHMETIC(long double, MPI_LONG_DOUBLE);
    ARITHMETIC(MPI_Aint, MPI_AINT); ARITHMETIC(MPI_Offset, MPI_OFFSET); ARITHMETIC(MPI_Count, MPI_COUNT);
    FOLD(float complex, MPI_C_FLOAT_COMPLEX, MPI_SUM, r + r * I, a + b); FOLD(double complex, MPI_C_DOUBLE_COMPLEX, MPI_SUM, r - r * I, a + b);
    FOLD(double complex, MPI_C_DOUBLE_COMPLEX, MPI_PROD, 1 + (r % 2) * I, a * b);
    LOGICAL(bool, MPI_C_BOOL); BITWISE(unsigned char, MPI_BYTE);
    LOCATION(float, MPI_FLOAT_INT); LOCATION(double, MPI_DOUBLE_INT); LOCATION(long, MPI_LONG_INT); LOCATION(int, MPI_2INT); LOCATION(short, MPI_SHORT_INT);
    LOCATION(long double, MPI_LONG_DOUBLE_INT);

    MPI_Op op;
    MPI_Op_create(count_and_add, 1, &op);
    MPI_Op_commutative(op, &commute);
    EQ(commute, 1);
    MPI_Op_commutative(MPI_SUM, &commute);
    EQ(commute, 1);
    int in[5], out[5], sum[5] = {0};
    for (int i = 0; i < 5; i++) in[i] = t_rank + i, out[i] = 100;
    MPI_Reduce_local(in, out, 5, MPI_INT, op);
    EQ(calls, 1);
    EQ(out[4], t_rank + 104);
    MPI_Reduce_local(in, out, 5, MPI_INT, MPI_SUM);
    EQ(out[4], 2 * t_rank + 108);
    MPI_Allreduce(in, sum, 5, MPI_INT, op, c);
    EQ(sum[3], t_size * (t_size - 1) / 2 + 3 * t_size);
    MPI_Op_free(&op);
    OK(op == MPI_OP_NULL);
    MPI_Comm_free(&c);
    say("%d combinations", checked);
    return t_end();
}
