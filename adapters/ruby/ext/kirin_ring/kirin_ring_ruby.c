/*
 * Ruby's side of the ring (adapters/ring): takes a request apart into an environment of Rack
 * (environment.c), and puts a plain response together (answer.c). What is unusual is left to the
 * code in Ruby: then `answer` returns false and has done nothing.
 *
 * For CRuby 3.0 and later.
 */
#include "answer.h"
#include "environment.h"
#include "kirin_ring.h"

#include <ruby/thread.h>

#include <errno.h>
#include <string.h>

typedef struct {
    /* NULL when it is detached. */
    kirin_ring *ring;
    environments all;
    /* The present request. */
    rack_request request;
} ring_object;

/* ------------------------------------------------------------------------ the object */

static void ring_mark(void *pointer)
{
    const ring_object *self = pointer;
    environments_mark(&self->all);
    rb_gc_mark(self->request.environment);
    rb_gc_mark(self->request.body);
    rb_gc_mark(self->request.after_reply);
    rb_gc_mark(self->request.response_finished);
}

static void ring_free(void *pointer)
{
    ring_object *self = pointer;
    if (self->ring) kirin_ring_detach(self->ring);
    xfree(self);
}

static size_t ring_size(const void *pointer)
{
    (void)pointer;
    return sizeof(ring_object);
}

static const rb_data_type_t ring_type = {
    .wrap_struct_name = "Kirin::Ring",
    .function = { .dmark = ring_mark, .dfree = ring_free, .dsize = ring_size },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static ring_object *ring_of(VALUE object)
{
    return rb_check_typeddata(object, &ring_type);
}

/* Between two requests nothing of them is kept. */
static void forget(ring_object *self)
{
    rack_request *request = &self->request;
    request->environment = request->body = Qnil;
    request->after_reply = request->response_finished = Qnil;
}

/* Returns whether the request in the slot waits for its answer, which this process may give. */
static int has_request(const ring_object *self)
{
    return self->ring && kirin_ring_has_request(self->ring);
}

/* ------------------------------------------------------------------------ attaching */

typedef struct {
    int fd;
    pid_t parent;
    kirin_ring *ring;
    /* What errno was. */
    int error;
} attachment;

static void *attach_without_lock(void *pointer)
{
    attachment *wanted = pointer;
    wanted->ring = kirin_ring_attach(wanted->fd, wanted->parent);
    wanted->error = errno;
    return NULL;
}

/*
 * call-seq: attach_to(fd, parent, constant) -> ring, nil or false
 *
 * Returns the ring that the front offers on a connection after the greeting, or nil if it offers
 * none. Returns false if a signal has come first. The process gets TERM when `parent` ends.
 * `constant` has what is the same in all environments.
 */
static VALUE ring_attach(VALUE class, VALUE fd, VALUE parent, VALUE constant)
{
    attachment wanted = { NUM2INT(fd), NUM2PIDT(parent), NULL, EINTR };
    ring_object *self;
    /* All is there before the memory is: an exception loses nothing. */
    VALUE object = TypedData_Make_Struct(class, ring_object, &ring_type, self);
    Check_Type(constant, T_HASH);
    environments_init(&self->all);
    forget(self);
    self->all.constant = rb_hash_dup(constant);
    /* It is not called if a signal waits to be handled. */
    rb_thread_call_without_gvl2(attach_without_lock, &wanted, RUBY_UBF_IO, NULL);
    self->ring = wanted.ring;
    if (self->ring) return object;
    rb_thread_check_ints();
    return wanted.error == EINTR ? Qfalse : Qnil;
}

/* Gives the memory back. It may be called twice. */
static VALUE ring_detach(VALUE object)
{
    ring_object *self = ring_of(object);
    if (self->ring) kirin_ring_detach(self->ring);
    self->ring = NULL;
    return Qnil;
}

/* ------------------------------------------------------------------------ requests */

typedef struct {
    kirin_ring *ring;
    enum kirin_ring_turn turn;
} turn;

static void *take_without_lock(void *pointer)
{
    turn *taken = pointer;
    taken->turn = kirin_ring_take(taken->ring);
    return NULL;
}

/*
 * call-seq: take -> hash, true, false or nil
 *
 * Waits for the next request. Returns its environment, which the application may see: the request
 * is not given to another worker any more. Returns true if the request comes over the connection,
 * false if the worker must leave, and nil if a signal has come or nothing has come for a minute.
 */
static VALUE ring_take(VALUE object)
{
    ring_object *self = ring_of(object);
    turn taken = { self->ring, KIRIN_RING_INTERRUPTED };
    const char *bytes;
    size_t length;
    VALUE environment;
    if (!self->ring) return Qfalse;
    forget(self);
    /* It is not called if a signal waits to be handled, and handles none if there is a request. */
    rb_thread_call_without_gvl2(take_without_lock, &taken, RUBY_UBF_IO, NULL);
    switch (taken.turn) {
    case KIRIN_RING_INTERRUPTED:
        rb_thread_check_ints();
        return Qnil;
    case KIRIN_RING_LEAVE:
        return Qfalse;
    case KIRIN_RING_CONNECTION:
        return Qtrue;
    case KIRIN_RING_REQUEST:
        break;
    }
    bytes = kirin_ring_request(self->ring, &length);
    self->request = environments_read(&self->all, bytes, length);
    kirin_ring_begin(self->ring);
    environment = self->request.environment;
    /* The application alone keeps it. */
    self->request.environment = Qnil;
    return environment;
}

/* Returns the bytes of the request's body, or nil if it has none. */
static VALUE ring_body(VALUE object)
{
    ring_object *self = ring_of(object);
    VALUE body = self->request.body;
    self->request.body = Qnil;
    return body;
}

/* Returns whether the path of the request is the same percent-encoded as it is decoded. */
static VALUE ring_has_plain_path(VALUE object)
{
    return ring_of(object)->request.has_plain_path ? Qtrue : Qfalse;
}

/* Returns the request's `rack.after_reply` and `rack.response_finished`. */
static VALUE ring_after(VALUE object)
{
    const ring_object *self = ring_of(object);
    return rb_assoc_new(self->request.after_reply, self->request.response_finished);
}

/* ------------------------------------------------------------------------ answers */

/* Returns whether the application has work for the time after the response. */
static int has_work(const ring_object *self)
{
    const rack_request *request = &self->request;
    if (NIL_P(request->after_reply)) return 0;
    return RARRAY_LEN(request->after_reply) > 0 || RARRAY_LEN(request->response_finished) > 0;
}

/*
 * call-seq: answer(status, headers, body) -> true or false
 *
 * Answers with a plain response: a number, a hash, and an array of strings. Returns false, and has
 * done nothing, for any other, for HEAD, if work follows, or if the answer has begun.
 */
static VALUE ring_answer(VALUE object, VALUE status, VALUE headers, VALUE body)
{
    ring_object *self = ring_of(object);
    size_t length;
    if (!has_request(self) || self->request.is_head || has_work(self)) return Qfalse;
    length = answer_write(kirin_ring_room(self->ring), kirin_ring_room_bytes(self->ring), status,
        headers, body);
    if (length == 0) return Qfalse;
    kirin_ring_answer(self->ring, length, 0);
    return Qtrue;
}

/*
 * call-seq: answer_bytes(strings, cleans_up) -> true or false
 *
 * Answers with the bytes of a complete response. `cleans_up` says that work follows, at whose end
 * `cleaned_up` is called. Returns false, and has done nothing, if they are too long or the answer
 * has begun.
 */
static VALUE ring_answer_bytes(VALUE object, VALUE strings, VALUE cleans_up)
{
    ring_object *self = ring_of(object);
    size_t length = 0;
    char *at;
    long i;
    Check_Type(strings, T_ARRAY);
    if (!has_request(self)) return Qfalse;
    for (i = 0; i < RARRAY_LEN(strings); i++) {
        Check_Type(RARRAY_AREF(strings, i), T_STRING);
        length += (size_t)RSTRING_LEN(RARRAY_AREF(strings, i));
    }
    if (length > kirin_ring_room_bytes(self->ring)) return Qfalse;
    at = kirin_ring_room(self->ring);
    for (i = 0; i < RARRAY_LEN(strings); i++) {
        VALUE string = RARRAY_AREF(strings, i);
        memcpy(at, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
        at += RSTRING_LEN(string);
    }
    kirin_ring_answer(self->ring, length, RTEST(cleans_up));
    return Qtrue;
}

/*
 * Says that the answer comes over the connection. Returns whether it may be written there: the
 * request has no answer yet, and this is not a forked process.
 */
static VALUE ring_over_connection(VALUE object)
{
    ring_object *self = ring_of(object);
    return self->ring && kirin_ring_over_connection(self->ring) ? Qtrue : Qfalse;
}

/* Says that the work after the answer is done. */
static VALUE ring_cleaned_up(VALUE object)
{
    ring_object *self = ring_of(object);
    if (self->ring) kirin_ring_cleaned_up(self->ring);
    return Qnil;
}

/* ------------------------------------------------------------------------ the class */

RUBY_FUNC_EXPORTED void Init_kirin_ring(void)
{
    VALUE ring = rb_define_class_under(rb_define_module("Kirin"), "Ring", rb_cObject);
    answer_prepare();
    environments_prepare();
    /* Only `attach_to` makes a ring. */
    rb_undef_alloc_func(ring);
    rb_undef_method(rb_singleton_class(ring), "new");
    rb_define_singleton_method(ring, "attach_to", ring_attach, 3);
    rb_define_method(ring, "detach", ring_detach, 0);
    rb_define_method(ring, "take", ring_take, 0);
    rb_define_method(ring, "body", ring_body, 0);
    rb_define_method(ring, "plain_path?", ring_has_plain_path, 0);
    rb_define_method(ring, "after", ring_after, 0);
    rb_define_method(ring, "answer", ring_answer, 3);
    rb_define_method(ring, "answer_bytes", ring_answer_bytes, 2);
    rb_define_method(ring, "over_connection", ring_over_connection, 0);
    rb_define_method(ring, "cleaned_up", ring_cleaned_up, 0);
}
