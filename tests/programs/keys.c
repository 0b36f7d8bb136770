/* A key that was freed: attributes that have it keep it alive, under every copy of its number. */
#include "t.h"

static int deleted;

static int on_delete(MPI_Comm c, int key, void *value, void *extra) {
    (void)c, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static int on_delete_type(MPI_Datatype t, int key, void *value, void *extra) {
    (void)t, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int key, kept, other, flag, value = 7, *found;
    MPI_Comm a, b;
    MPI_Comm_dup(MPI_COMM_SELF, &a);

    say("a communicator");
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, on_delete, &key, NULL);
    kept = key;
    MPI_Comm_set_attr(a, key, &value);
    MPI_Comm_free_keyval(&key);
    EQ(key, MPI_KEYVAL_INVALID);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL);
    OK(other != kept);
    EQ(MPI_Comm_get_attr(a, kept, &found, &flag), MPI_SUCCESS);
    OK(flag && found == &value);
    MPI_Comm_dup(a, &b);
    EQ(MPI_Comm_get_attr(b, kept, &found, &flag), MPI_SUCCESS);
    OK(flag && found == &value);
    EQ(MPI_Comm_delete_attr(a, kept), MPI_SUCCESS);
    EQ(deleted, 1);
    EQ(MPI_Comm_get_attr(a, kept, &found, &flag), MPI_SUCCESS);
    EQ(flag, 0);
    MPI_Comm_free(&b);
    EQ(deleted, 2);
    MPI_Comm_free(&a);
    MPI_Comm_free_keyval(&other);

    say("a datatype");
    MPI_Datatype t, u;
    MPI_Type_contiguous(2, MPI_INT, &t);
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, on_delete_type, &key, NULL);
    kept = key, deleted = 0;
    MPI_Type_set_attr(t, key, &value);
    MPI_Type_free_keyval(&key);
    MPI_Type_dup(t, &u);
    EQ(MPI_Type_delete_attr(t, kept), MPI_SUCCESS);
    EQ(deleted, 1);
    MPI_Type_free(&u);
    EQ(deleted, 2);
    MPI_Type_free(&t);
    return t_end();
}
