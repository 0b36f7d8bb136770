/* Windows as objects: predefined and own attributes, names, hints, groups, error handlers; memory shared by loading and
 * storing; memory attached and detached. */
#include "t.h"
static int deleted, handled, handled_class;
static MPI_Win handled_win;
static int on_delete(MPI_Win win, int key, void *value, void *extra) {
    (void)win, (void)key;
    deleted += *(int *)extra + (int)(intptr_t)value;
    return MPI_SUCCESS;
}
static void handler(MPI_Win *win, int *code, ...) {
    handled++;
    handled_win = *win;
    MPI_Error_class(*code, &handled_class);
}
int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Win win;
    char name[MPI_MAX_OBJECT_NAME];
    int len, flag, key, extra = 100, *flavor, *model, *unit, result;
    void *base, *got;
    MPI_Aint *size;

    PART("predefined attributes");
    int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_DYNAMIC};
    static char own[5000];
    /* With "apart" the ranks need not share memory. */
    int apart_only = argc > 1 && !strcmp(argv[1], "apart");
    for (int kind = 0; kind < 4; kind++) {
        if (kind == 2 && apart_only) continue;
        base = NULL;
        if (kind == 0) MPI_Win_create(base = own, 4096 + t_rank, 2, MPI_INFO_NULL, w, &win);
        if (kind == 1) MPI_Win_allocate(4096 + t_rank, 2, MPI_INFO_NULL, w, &base, &win);
        if (kind == 2) MPI_Win_allocate_shared(4096 + t_rank, 2, MPI_INFO_NULL, w, &base, &win);
        if (kind == 3) MPI_Win_create_dynamic(MPI_INFO_NULL, w, &win);
        MPI_Win_get_attr(win, MPI_WIN_BASE, &got, &flag);
        OK(flag);
        if (kind != 3) OK(got == base);
        MPI_Win_get_attr(win, MPI_WIN_SIZE, &size, &flag);
        OK(flag && *size == (kind == 3 ? 0 : 4096 + t_rank));
        MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag);
        OK(flag && *unit == (kind == 3 ? 1 : 2));
        MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
        OK(flag && *flavor == flavors[kind]);
        MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag);
        OK(flag && *model == MPI_WIN_UNIFIED);

        MPI_Group group, all;
        MPI_Win_get_group(win, &group);
        MPI_Comm_group(w, &all);
        MPI_Group_compare(group, all, &result);
        EQ(result, MPI_IDENT);
        MPI_Group_free(&group), MPI_Group_free(&all);

        MPI_Win_set_name(win, "my window");
        MPI_Win_get_name(win, name, &len);
        OK(len == 9 && !strcmp(name, "my window"));

#if MPI_VERSION * 10 + MPI_SUBVERSION >= 41
        /* MPI 4.1: a null window has a name, and a rank sees its own part of a window that it brought the memory for. */
        MPI_Win_get_name(MPI_WIN_NULL, name, &len);
        OK(len == 12 && !strcmp(name, "MPI_WIN_NULL"));
        for (int r = 0; kind == 0 && r <= t_size; r++) {
            MPI_Aint bytes = -1;
            int du;
            void *part = &win;
            MPI_Win_shared_query(win, r < t_size ? r : MPI_PROC_NULL, &bytes, &du, &part);
            OK(r == t_rank ? bytes == 4096 + t_rank && du == 2 && part == own : bytes == 0 && !part);
        }
#endif

        MPI_Info info, used;
        MPI_Win_get_info(win, &used);
        MPI_Info_free(&used);
        MPI_Info_create(&info);
        MPI_Info_set(info, "no_locks", "false");
        MPI_Info_set(info, "unheard of", "true");
        MPI_Win_set_info(win, info);
        MPI_Info_free(&info);
        /* A hint that was ignored is not reported. */
        char value[100];
        MPI_Win_get_info(win, &used);
        MPI_Info_get(used, "unheard of", 99, value, &flag);
        EQ(flag, 0);
        MPI_Info_free(&used);

        MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, &extra);
        deleted = 0;
        MPI_Win_get_attr(win, key, &got, &flag);
        EQ(flag, 0);
        MPI_Win_set_attr(win, key, (void *)5);
        MPI_Win_get_attr(win, key, &got, &flag);
        OK(flag && got == (void *)5);
        MPI_Win_set_attr(win, key, (void *)6);
        EQ(deleted, 105);
        MPI_Win_delete_attr(win, key);
        EQ(deleted, 211);
        MPI_Win_set_attr(win, key, (void *)7);
        MPI_Win_free_keyval(&key);
        EQ(key, MPI_KEYVAL_INVALID);

        MPI_Errhandler h, h2;
        MPI_Win_get_errhandler(win, &h);
        OK(h == MPI_ERRORS_ARE_FATAL);
        MPI_Win_create_errhandler(handler, &h);
        MPI_Win_set_errhandler(win, h);
        MPI_Win_get_errhandler(win, &h2);
        OK(h2 == h);
        MPI_Errhandler_free(&h), MPI_Errhandler_free(&h2);
        handled = 0;
        MPI_Win_lock_all(0, win);
        MPI_Put(&len, 1, MPI_INT, t_size + 1, 0, 1, MPI_INT, win);
        OK(handled == 1 && handled_class == MPI_ERR_RANK && handled_win == win);
        MPI_Win_unlock_all(win);
        MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
        OK(handled == 2 && handled_class == MPI_ERR_OTHER);

        MPI_Win_free(&win);
        OK(win == MPI_WIN_NULL);
        EQ(deleted, 318);
    }

    PART("shared memory: one piece, and in pieces");
    for (int apart = 0; apart < 2 && !apart_only; apart++) {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false");
        int *mine, *theirs, wrong = 0, n = 3 + t_rank, du;
        MPI_Aint bytes;
        MPI_Win_allocate_shared(n * sizeof(int), sizeof(int), info, w, &mine, &win);
        MPI_Info_free(&info);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
        for (int i = 0; i < n; i++) mine[i] = t_rank * 100 + i;
        MPI_Win_sync(win);
        MPI_Barrier(w);
        MPI_Win_sync(win);
        int *expected = NULL;
        for (int r = 0; r < t_size; r++) {
            MPI_Win_shared_query(win, r, &bytes, &du, &theirs);
            MPI_Aint asked = (3 + r) * sizeof(int); /* Open MPI rounds it up */
            OK((bytes == asked || (apart && !getenv("VMPI_JOBID") && bytes > asked)) && du == sizeof(int));
            if (!apart && r > 0) OK(theirs == expected);
            expected = theirs + 3 + r;
            for (int i = 0; i < 3 + r; i++) wrong += theirs[i] != r * 100 + i;
            if (r == t_rank) OK(theirs == mine);
        }
        MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &du, &theirs);
        OK(bytes >= 3 * (MPI_Aint)sizeof(int) && theirs[0] == 0);
        MPI_Barrier(w);
        /* What one stores another gets, and what one puts another loads. */
        int right = (t_rank + 1) % t_size, left = (t_rank + t_size - 1) % t_size, value = 0;
        MPI_Win_shared_query(win, right, &bytes, &du, &theirs);
        theirs[1] = 7000 + t_rank;
        MPI_Put(&t_rank, 1, MPI_INT, right, 2, 1, MPI_INT, win);
        MPI_Win_flush(right, win);
        MPI_Win_sync(win);
        MPI_Barrier(w);
        MPI_Win_sync(win);
        MPI_Get(&value, 1, MPI_INT, t_rank, 1, 1, MPI_INT, win);
        MPI_Win_flush(t_rank, win);
        OK(value == 7000 + left && mine[2] == left);
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
        EQ(wrong, 0);
    }

    PART("shared memory of the first rank only");
    for (int apart = 0; apart < 2 && !apart_only; apart++) {
        long *mine, *first;
        MPI_Aint bytes;
        int du, wrong = 0;
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false");
        MPI_Win_allocate_shared(t_rank ? 0 : 1000 * sizeof(long), sizeof(long), info, w, &mine, &win);
        MPI_Info_free(&info);
        for (int r = 1; r < t_size && apart; r++) {
            MPI_Win_shared_query(win, r, &bytes, &du, &first);
            OK(bytes == 0 && !first);
        }
        if (apart) OK(!mine == (t_rank > 0));
        MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &du, &first);
        OK(bytes == 1000 * sizeof(long) || (apart && !getenv("VMPI_JOBID") && bytes > 8000));
        MPI_Win_fence(0, win);
        for (int i = t_rank; i < 1000; i += t_size) first[i] = i;
        MPI_Win_fence(0, win);
        for (int i = 0; i < 1000; i++) wrong += first[i] != i;
        MPI_Win_fence(0, win);
        EQ(wrong, 0);
        MPI_Win_free(&win);
    }

    PART("dynamic: attach, tell the others where, detach");
    {
        enum { PIECES = 20 };
        int *piece[PIECES], target = (t_rank + 1) % t_size, wrong = 0;
        MPI_Aint here[PIECES], there[PIECES];
        MPI_Win_create_dynamic(MPI_INFO_NULL, w, &win);
        for (int round = 0; round < 3; round++) {
            for (int p = 0; p < PIECES; p++) {
                piece[p] = calloc(100 + p, sizeof(int));
                MPI_Win_attach(win, piece[p], (100 + p) * sizeof(int));
                MPI_Get_address(piece[p], &here[p]);
            }
            MPI_Sendrecv(here, PIECES, MPI_AINT, (t_rank + t_size - 1) % t_size, 1, there, PIECES, MPI_AINT, target, 1, w,
                         MPI_STATUS_IGNORE);
            MPI_Win_fence(0, win);
            int value[PIECES], one = 1;
            for (int p = 0; p < PIECES; p++) {
                value[p] = t_rank * 1000 + p;
                MPI_Put(&value[p], 1, MPI_INT, target, MPI_Aint_add(there[p], 4 * (p + 99)), 1, MPI_INT, win);
                MPI_Accumulate(&one, 1, MPI_INT, target, there[p], 1, MPI_INT, MPI_SUM, win);
            }
            MPI_Win_fence(0, win);
            for (int p = 0; p < PIECES; p++)
                wrong += piece[p][p + 99] != (t_rank + t_size - 1) % t_size * 1000 + p || piece[p][0] != 1;
            MPI_Win_fence(0, win);
            for (int p = 0; p < PIECES; p++) {
                MPI_Win_detach(win, piece[p]);
                free(piece[p]);
            }
        }
        MPI_Win_free(&win);
        EQ(wrong, 0);
    }
    say("windows");
    return t_end();
}
