/* Error classes of calls: what the standard says, checked; T_PRINT=1 prints what each call returns, to compare libraries. */
#ifndef ARGS_H
#define ARGS_H
#include "t.h"
static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}
__attribute__((unused)) static int t_class(int got, int a, int b, int strict, const char *call, const char *file, int line) {
    int vmpi = getenv("VMPI_JOBID") != NULL, len;
    if (getenv("T_PRINT") && t_rank == 0) {
        char text[MPI_MAX_ERROR_STRING];
        MPI_Error_string(got, text, &len);
        fprintf(stderr, "%d %s: %.60s\n", line, call, text);
    }
    return t_check(got == a || got == b || (strict && !vmpi), call, file, line, got, a);
}
/* The call returns an error of this class. */
#define IS(class, call) t_class(class_of(call), class, class, 0, #call, __FILE__, __LINE__)
/* Libraries differ, and either is good. */
#define EITHER(a, b, call) t_class(class_of(call), a, b, 0, #call, __FILE__, __LINE__)
/* What the standard says and a peer does not do: checked under vmpi only. */
#define MUST(class, call) t_class(class_of(call), class, class, 1, #call, __FILE__, __LINE__)
/* A peer ends the job here, or crashes: called under vmpi only. */
#define ONLY(class, call) do { if (VMPI) IS(class, call); } while (0)
#define FINE(call) IS(MPI_SUCCESS, call)
#define VMPI (getenv("VMPI_JOBID") != NULL)
#endif
