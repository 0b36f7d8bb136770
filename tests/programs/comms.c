/* Communicators, groups, attributes, names, info, intercommunicators and their collectives. */
#include "t.h"
static int copies, deletes;
static int copy_fn(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag) {
    (void)c, (void)key;
    copies++;
    *(void **)out = (char *)in + *(int *)extra;
    *flag = 1;
    return MPI_SUCCESS;
}
static int no_copy_fn(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag) {
    (void)c, (void)key, (void)extra, (void)in, (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}
static int delete_fn(MPI_Comm c, int key, void *value, void *extra) {
    (void)c, (void)key, (void)value, (void)extra;
    deletes++;
    return MPI_SUCCESS;
}
static int sum_over(MPI_Comm c) {
    int sum = -1;
    MPI_Allreduce(&t_rank, &sum, 1, MPI_INT, MPI_SUM, c);
    return sum;
}

static void groups(void) {
    PART("groups");
    MPI_Group world, odd, first, g;
    int size, rank, result, ranks[t_size], out[t_size];
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int k = 0;
    for (int r = 1; r < t_size; r += 2) ranks[k++] = r;
    MPI_Group_incl(world, k, ranks, &odd);
    MPI_Group_size(odd, &size);
    EQ(size, t_size / 2);
    MPI_Group_rank(odd, &rank);
    EQ(rank, t_rank % 2 ? t_rank / 2 : MPI_UNDEFINED);
    int half = (t_size + 1) / 2;
    for (int r = 0; r < half; r++) ranks[r] = r;
    MPI_Group_incl(world, half, ranks, &first);
    char line[200];
    int used = 0;
    struct { const char *name; int (*op)(MPI_Group, MPI_Group, MPI_Group *); } ops[] = {{"union", MPI_Group_union}, {"intersection", MPI_Group_intersection}, {"difference", MPI_Group_difference}};
    for (int o = 0; o < 3; o++) {
        ops[o].op(odd, first, &g);
        MPI_Group_size(g, &size);
        for (int r = 0; r < size; r++) ranks[r] = r;
        MPI_Group_translate_ranks(g, size, ranks, world, out);
        used += sprintf(line + used, "%s", ops[o].name);
        for (int r = 0; r < size; r++) used += sprintf(line + used, " %d", out[r]);
        used += sprintf(line + used, "; ");
        if (g != MPI_GROUP_EMPTY) MPI_Group_free(&g);
    }
    say("%s", line);
    int range[1][3] = {{t_size - 1, 0, -1}};
    MPI_Group_range_incl(world, 1, range, &g);
    MPI_Group_compare(g, world, &result);
    EQ(result, t_size > 1 ? MPI_SIMILAR : MPI_IDENT);
    MPI_Group_rank(g, &rank);
    EQ(rank, t_size - 1 - t_rank);
    MPI_Group_free(&g);
    int every[1][3] = {{0, t_size - 1, 2}};
    MPI_Group_range_excl(world, 1, every, &g);
    MPI_Group_compare(g, odd, &result);
    EQ(result, MPI_IDENT);
    MPI_Group_free(&g);
    MPI_Group_compare(odd, world, &result);
    EQ(result, MPI_UNEQUAL);
    ranks[0] = 0;
    MPI_Group_translate_ranks(world, 1, ranks, odd, out);
    EQ(out[0], MPI_UNDEFINED);
    ranks[0] = MPI_PROC_NULL;
    MPI_Group_translate_ranks(world, 1, ranks, odd, out);
    EQ(out[0], MPI_PROC_NULL);

    PART("communicators of groups");
    MPI_Comm c;
    MPI_Comm_create(MPI_COMM_WORLD, odd, &c);
    OK((c == MPI_COMM_NULL) == (t_rank % 2 == 0));
    if (c != MPI_COMM_NULL) {
        say("sum over the odd ranks %d", sum_over(c));
        MPI_Comm_free(&c);
    }
    if (t_rank < half) {
        MPI_Comm_create_group(MPI_COMM_WORLD, first, 17, &c);
        say("sum over the first half %d", sum_over(c));
        MPI_Comm_free(&c);
    }
    MPI_Group_free(&first), MPI_Group_free(&odd), MPI_Group_free(&world);
    OK(world == MPI_GROUP_NULL);
}

static void communicators(void) {
    PART("split, dup, compare");
    MPI_Comm c, d, e;
    int result, rank, size;
    MPI_Comm_split(MPI_COMM_WORLD, t_rank % 3, -t_rank, &c);
    MPI_Comm_rank(c, &rank), MPI_Comm_size(c, &size);
    say("split: %d of %d, sum %d", rank, size, sum_over(c));
    MPI_Comm_dup(c, &d);
    MPI_Comm_compare(c, d, &result);
    EQ(result, MPI_CONGRUENT);
    MPI_Comm_compare(c, c, &result);
    EQ(result, MPI_IDENT);
    MPI_Comm_split(c, 0, -rank, &e);
    MPI_Comm_compare(c, e, &result);
    EQ(result, size > 1 ? MPI_SIMILAR : MPI_CONGRUENT);
    MPI_Comm_free(&e);
    PART("a message stays in its communicator");
    MPI_Request q[2];
    int from_c = -1, from_d = -1, one = 100 + t_rank, two = 200 + t_rank, next = (rank + 1) % size, prev = (rank + size - 1) % size, theirs = -1;
    MPI_Irecv(&from_d, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, d, &q[0]);
    MPI_Irecv(&from_c, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, &q[1]);
    MPI_Send(&one, 1, MPI_INT, next, 1, c);
    MPI_Send(&two, 1, MPI_INT, next, 1, d);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(&t_rank, 1, MPI_INT, next, 2, &theirs, 1, MPI_INT, prev, 2, c, MPI_STATUS_IGNORE);
    OK(from_c == 100 + theirs && from_d == 200 + theirs);
    MPI_Comm_free(&d), MPI_Comm_free(&c);
    OK(c == MPI_COMM_NULL);
    MPI_Comm_split(MPI_COMM_WORLD, t_rank == 0 ? MPI_UNDEFINED : 1, 0, &c);
    OK((c == MPI_COMM_NULL) == (t_rank == 0));
    if (c != MPI_COMM_NULL) MPI_Comm_free(&c);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c);
    MPI_Comm_size(c, &size);
    EQ(size, t_size);
    MPI_Comm_free(&c);
    for (int i = 0; i < 3000; i++) { /* more than a context id space of a few thousand would survive without reuse */
        MPI_Comm_dup(i % 2 ? MPI_COMM_WORLD : MPI_COMM_SELF, &c);
        MPI_Comm_free(&c);
    }

    PART("names");
    char name[MPI_MAX_OBJECT_NAME];
    int len;
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &len);
    say("%s %d", name, len);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_name(c, "my own");
    MPI_Comm_get_name(c, name, &len);
    OK(!strcmp(name, "my own") && len == 6);
    MPI_Comm_free(&c);
}

static void attributes(void) {
    PART("attributes");
    MPI_Comm c, d;
    int key, key2, flag, extra = 1;
    static char cell[8];
    void *value;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_create_keyval(copy_fn, delete_fn, &key, &extra);
    MPI_Comm_create_keyval(no_copy_fn, MPI_COMM_NULL_DELETE_FN, &key2, NULL);
    MPI_Comm_get_attr(c, key, &value, &flag);
    EQ(flag, 0);
    MPI_Comm_set_attr(c, key, cell);
    MPI_Comm_set_attr(c, key2, cell);
    MPI_Comm_dup(c, &d);
    MPI_Comm_get_attr(d, key, &value, &flag);
    OK(flag && value == cell + 1);
    MPI_Comm_get_attr(d, key2, &value, &flag);
    EQ(flag, 0);
    EQ(copies, 1);
    MPI_Comm_set_attr(d, key, cell + 3); /* deletes the old one */
    EQ(deletes, 1);
    MPI_Comm_delete_attr(c, key);
    EQ(deletes, 2);
    MPI_Comm_free(&d);
    EQ(deletes, 3);
    MPI_Comm_free(&c);
    MPI_Comm_free_keyval(&key), MPI_Comm_free_keyval(&key2);
    OK(key == MPI_KEYVAL_INVALID);
    MPI_Datatype t, u;
    MPI_Type_contiguous(2, MPI_INT, &t);
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    MPI_Type_set_attr(t, key, cell + 5);
    MPI_Type_dup(t, &u);
    MPI_Type_get_attr(u, key, &value, &flag);
    OK(flag && value == cell + 5);
    MPI_Type_free(&t), MPI_Type_free(&u), MPI_Type_free_keyval(&key);
    int *number;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &number, &flag);
    OK(flag && *number >= 32767);
    int highest = *number, got = -1;
    MPI_Sendrecv(&t_rank, 1, MPI_INT, t_rank, highest, &got, 1, MPI_INT, t_rank, highest, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EQ(got, t_rank);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &number, &flag);
    EQ(flag, 1);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
    if (flag) EQ(*number, 0);
}

static void infos(void) {
    PART("info");
    MPI_Info i, j;
    int n, flag, len;
    char value[64], key[MPI_MAX_INFO_KEY];
    MPI_Info_create(&i);
    MPI_Info_set(i, "one", "1"), MPI_Info_set(i, "two", "22"), MPI_Info_set(i, "one", "111");
    MPI_Info_get_nkeys(i, &n);
    EQ(n, 2);
    MPI_Info_get_nthkey(i, 0, key);
    OK(!strcmp(key, "one"));
    MPI_Info_get(i, "one", 63, value, &flag);
    OK(flag && !strcmp(value, "111"));
    MPI_Info_get(i, "none", 63, value, &flag);
    EQ(flag, 0);
    MPI_Info_dup(i, &j);
    MPI_Info_delete(i, "one");
    MPI_Info_get_valuelen(j, "one", &len, &flag);
    OK(flag && len == 3);
    MPI_Info_get_nkeys(i, &n);
    EQ(n, 1);
    MPI_Info_free(&i), MPI_Info_free(&j);
    OK(i == MPI_INFO_NULL);
}

static void inter(void) {
    PART("intercommunicators");
    MPI_Comm local, between, merged, copy;
    int side = t_rank % 2, flag, size, lsize, rank;
    MPI_Comm_split(MPI_COMM_WORLD, side, t_rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - side, 12, &between);
    MPI_Comm_test_inter(between, &flag);
    EQ(flag, 1);
    MPI_Comm_remote_size(between, &size);
    MPI_Comm_size(between, &lsize);
    MPI_Comm_rank(between, &rank);
    EQ(size, side ? (t_size + 1) / 2 : t_size / 2);
    EQ(rank, t_rank / 2);
    MPI_Group remote;
    MPI_Comm_remote_group(between, &remote);
    MPI_Group_free(&remote);
    if (rank < size) {
        int theirs = -1;
        MPI_Status st;
        MPI_Sendrecv(&t_rank, 1, MPI_INT, rank, 4, &theirs, 1, MPI_INT, MPI_ANY_SOURCE, 4, between, &st);
        EQ(theirs, t_rank ^ 1);
        EQ(st.MPI_SOURCE, rank);
    }
    MPI_Barrier(between);
    int sum = -1, want = 0;
    MPI_Allreduce(&t_rank, &sum, 1, MPI_INT, MPI_SUM, between);
    for (int r = 1 - side; r < t_size; r += 2) want += r;
    EQ(sum, want);
    int value = -1;
    if (!side && rank == 0) value = 55;
    MPI_Bcast(&value, 1, MPI_INT, side ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, between);
    if (side) EQ(value, 55);
    int all[t_size];
    MPI_Allgather(&t_rank, 1, MPI_INT, all, 1, MPI_INT, between);
    for (int r = 0; r < size; r++) EQ(all[r], 2 * r + 1 - side);
    int out[t_size], in[t_size];
    for (int r = 0; r < size; r++) out[r] = t_rank * 100 + r;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, between);
    for (int r = 0; r < size; r++) EQ(in[r], (2 * r + 1 - side) * 100 + rank);
    MPI_Reduce(&t_rank, &sum, 1, MPI_INT, MPI_MAX, side ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, between);
    if (side && rank == 0) EQ(sum, (t_size - 1) / 2 * 2);
    MPI_Gather(&t_rank, 1, MPI_INT, all, 1, MPI_INT, side ? 0 : (rank == 0 ? MPI_ROOT : MPI_PROC_NULL), between);
    if (!side && rank == 0) for (int r = 0; r < size; r++) EQ(all[r], 2 * r + 1);
    MPI_Comm_dup(between, &copy);
    MPI_Comm_compare(between, copy, &flag);
    EQ(flag, MPI_CONGRUENT);
    MPI_Intercomm_merge(copy, side, &merged);
    MPI_Comm_rank(merged, &rank);
    say("merged as %d, sum %d", rank, sum_over(merged));
    MPI_Comm_free(&merged), MPI_Comm_free(&copy);
    MPI_Comm_free(&between), MPI_Comm_free(&local);
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    groups();
    communicators();
    attributes();
    infos();
    if (t_size > 1) inter();
    return t_end();
}
