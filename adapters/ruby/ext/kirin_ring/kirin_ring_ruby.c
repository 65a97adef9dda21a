/*
 * Ruby's side of the ring (adapters/ring): takes a request apart into an environment of Rack, and
 * puts a plain response together. Kirin::ResponseHead is the reference for responses. What is
 * unusual is left to it: then `answer` returns false and has done nothing.
 *
 * For CRuby 3.0 and later.
 */
#include <ruby.h>
#include <ruby/encoding.h>
#include <ruby/st.h>
#include <ruby/thread.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kirin_ring.h"

/* Names of variables that are kept as strings. */
#define KNOWN_NAMES 256

/* The most bytes of a name that is kept. */
#define KNOWN_BYTES 64

/* The most bytes of a head, as in Kirin::ResponseHead. */
#define MOST_HEAD_BYTES (63 * 1024)

/* The most bytes of "Content-Length: NUMBER" and the line ends behind it. */
#define LENGTH_BYTES 48

/* The most variables of a request whose names are compared with those of requests before. */
#define SHAPE_NAMES 96

/* How many sequences of names are kept. */
#define SHAPES 16

/* The values of an environment that come before those of the request. */
enum { HTTP_VERSION, AFTER_REPLY, RESPONSE_FINISHED, OWN_VALUES };

/*
 * The names of the variables in a request, in their order. Requests with the same names get copies
 * of one hash, in which only the values are replaced. No name is looked up then.
 */
typedef struct {
    /* A number that other names hardly have. */
    uintptr_t fingerprint;
    long count;
    VALUE names[SHAPE_NAMES];
    /* The hash, or nil as long as the names have come once only. */
    VALUE environment;
} shape;

typedef struct {
    /* NULL when it is detached. */
    kirin_ring *ring;
    /* What is the same in all environments. */
    VALUE constant;
    VALUE known[KNOWN_NAMES];
    shape shapes[SHAPES];
    /* Of the present request: its body or nil, and whether the method is HEAD. */
    VALUE body;
    int is_head;
    /* Whether its path is the same percent-encoded as it is decoded. */
    int has_plain_path;
    /* Its `rack.after_reply` and `rack.response_finished`. */
    VALUE after_reply, response_finished;
} ring_object;

static ID id_each;
static VALUE own_keys[OWN_VALUES], key_url_scheme;

/* ------------------------------------------------------------------------ the object */

static void ring_mark(void *pointer)
{
    ring_object *self = pointer;
    int i;
    rb_gc_mark(self->constant);
    rb_gc_mark(self->body);
    rb_gc_mark(self->after_reply);
    rb_gc_mark(self->response_finished);
    for (i = 0; i < KNOWN_NAMES; i++) rb_gc_mark(self->known[i]);
    /* The names are compared by address, so they must not move. */
    for (i = 0; i < SHAPES; i++) {
        const shape *one = &self->shapes[i];
        rb_gc_mark_locations(one->names, one->names + one->count);
        rb_gc_mark(one->environment);
    }
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
    int i;
    Check_Type(constant, T_HASH);
    for (i = 0; i < KNOWN_NAMES; i++) self->known[i] = Qnil;
    for (i = 0; i < SHAPES; i++) self->shapes[i].environment = Qnil;
    self->body = self->after_reply = self->response_finished = Qnil;
    self->constant = rb_hash_dup(constant);
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

/* The variables of a request. The values of an environment itself come first. */
typedef struct {
    VALUE values[OWN_VALUES + SHAPE_NAMES];
    VALUE names[SHAPE_NAMES];
    long count;
    uintptr_t fingerprint;
    /* Whether equal names have the same address. */
    int are_names_kept;
    /* The environment, if there are more variables than these arrays have room for, or nil. */
    VALUE environment;
} variables;

/* Returns a name of a variable: the same object as equal texts in the application's code. */
static VALUE name_of(ring_object *self, variables *all, const char *bytes, size_t length)
{
    unsigned index;
    size_t i;
    VALUE name;
    if (length > 0 && length <= KNOWN_BYTES) {
        index = (unsigned)(length * 37 + (unsigned char)bytes[length - 1] * 11
            + (unsigned char)bytes[length / 2] * 5 + (unsigned char)bytes[0]) % KNOWN_NAMES;
        name = self->known[index];
        if (!NIL_P(name) && (size_t)RSTRING_LEN(name) == length
            && memcmp(RSTRING_PTR(name), bytes, length) == 0)
            return name;
        for (i = 0; i < length && !(bytes[i] & 0x80); i++) { }
        if (i == length) {
            /* It takes the place of the one that was there: nobody can fill the memory. */
            return self->known[index] =
                rb_enc_interned_str(bytes, (long)length, rb_utf8_encoding());
        }
    }
    all->are_names_kept = 0;
    return rb_str_new(bytes, (long)length);
}

/* Returns a new environment with these variables, by looking up each name. */
static VALUE looked_up(const ring_object *self, const variables *all)
{
    VALUE environment = rb_hash_dup(self->constant);
    long i;
    for (i = 0; i < all->count; i++)
        rb_hash_aset(environment, all->names[i], all->values[OWN_VALUES + i]);
    return environment;
}

static void set_own_values(VALUE environment, const variables *all)
{
    int i;
    for (i = 0; i < OWN_VALUES; i++) rb_hash_aset(environment, own_keys[i], all->values[i]);
}

/* Makes the hash of a shape. */
static void keep_shape(const ring_object *self, shape *one, const variables *all)
{
    VALUE environment = rb_hash_dup(self->constant);
    long i;
    for (i = 0; i < OWN_VALUES; i++) rb_hash_aset(environment, own_keys[i], Qnil);
    for (i = 0; i < all->count; i++) rb_hash_aset(environment, all->names[i], Qnil);
    /* A name that comes twice, or that the environment has already, has no place of its own. */
    if ((long)RHASH_SIZE(environment) == (long)RHASH_SIZE(self->constant) + OWN_VALUES + all->count)
        one->environment = environment;
}

/* Returns the shape of the request with its hash, or NULL. */
static const shape *shape_of(ring_object *self, const variables *all)
{
    shape *one = &self->shapes[all->fingerprint % SHAPES];
    const size_t bytes = sizeof(VALUE) * (size_t)all->count;
    if (!all->are_names_kept) return NULL;
    if (one->fingerprint != all->fingerprint || one->count != all->count
        || memcmp(one->names, all->names, bytes) != 0) {
        one->fingerprint = all->fingerprint;
        one->count = all->count;
        memcpy(one->names, all->names, bytes);
        one->environment = Qnil;
        return NULL;
    }
    if (NIL_P(one->environment)) keep_shape(self, one, all);
    return NIL_P(one->environment) ? NULL : one;
}

typedef struct {
    VALUE environment;
    /* The values that stay. */
    long constant;
    const VALUE *next;
} replacement;

static int is_replaced(st_data_t key, st_data_t value, st_data_t argument, int error)
{
    replacement *state = (replacement *)argument;
    (void)key, (void)value, (void)error;
    return state->constant-- > 0 ? ST_CONTINUE : ST_REPLACE;
}

static int replace(st_data_t *key, st_data_t *value, st_data_t argument, int exists)
{
    replacement *state = (replacement *)argument;
    (void)key, (void)exists;
    *value = *state->next++;
    RB_OBJ_WRITTEN(state->environment, Qundef, (VALUE)*value);
    return ST_CONTINUE;
}

/* Returns a new environment with the variables of a request. */
static VALUE filled(ring_object *self, const variables *all)
{
    const shape *one;
    replacement state = { Qnil, (long)RHASH_SIZE(self->constant), all->values };
    VALUE environment = all->environment;
    if (NIL_P(environment) && (one = shape_of(self, all)) != NULL) {
        /* A hash keeps the order in which names were added. */
        state.environment = environment = rb_hash_dup(one->environment);
        st_foreach_with_replace(RHASH_TBL(environment), is_replaced, replace, (st_data_t)&state);
        return environment;
    }
    if (NIL_P(environment)) environment = looked_up(self, all);
    set_own_values(environment, all);
    return environment;
}

static void add(ring_object *self, variables *all, VALUE name, VALUE value)
{
    if (NIL_P(all->environment) && all->count == SHAPE_NAMES)
        all->environment = looked_up(self, all);
    if (!NIL_P(all->environment)) {
        rb_hash_aset(all->environment, name, value);
        return;
    }
    all->names[all->count] = name;
    all->values[OWN_VALUES + all->count++] = value;
    all->fingerprint = (all->fingerprint ^ (name >> 3)) * 0x9E3779B1u;
    all->fingerprint ^= all->fingerprint >> 15;
}

/* The bytes of a path that are not percent-encoded, as in Kirin::RackPath. */
static unsigned char is_path_byte[256];

static int is_plain_path(const char *bytes, size_t length)
{
    size_t i;
    for (i = 0; i < length; i++)
        if (!is_path_byte[(unsigned char)bytes[i]]) return 0;
    return 1;
}

static int is(const char *bytes, size_t length, const char *word, size_t word_length)
{
    return length == word_length && memcmp(bytes, word, length) == 0;
}

#define IS(bytes, length, word) is(bytes, length, word, sizeof word - 1)

static NORETURN(void refuse(void));
static void refuse(void)
{
    rb_raise(rb_eArgError, "what came through the ring is no request");
}

/* Returns the environment of a request. Raises ArgumentError if the bytes are no request. */
static VALUE environment(ring_object *self, const char *bytes, size_t length)
{
    const char *at = memchr(bytes, ':', length < 8 ? length : 8), *digit, *end;
    size_t block = 0;
    variables all;
    VALUE env, path = Qnil;
    int is_https = 0, is_script_empty = 0;

    if (!at || at == bytes) refuse();
    for (digit = bytes; digit < at; digit++) {
        if (*digit < '0' || *digit > '9') refuse();
        block = block * 10 + (size_t)(*digit - '0');
    }
    at++;
    /* The comma ends the head. */
    if (block >= (size_t)(bytes + length - at)) refuse();
    end = at + block;
    self->is_head = 0;
    self->has_plain_path = 1;
    all.count = 0;
    all.fingerprint = 1;
    all.are_names_kept = 1;
    all.environment = all.values[HTTP_VERSION] = Qnil;
    while (at < end) {
        const char *value = memchr(at, '\0', (size_t)(end - at)), *next;
        size_t name_length, value_length;
        VALUE text;
        if (!value) refuse();
        name_length = (size_t)(value - at);
        value++;
        next = memchr(value, '\0', (size_t)(end - value));
        if (!next) refuse();
        value_length = (size_t)(next - value);
        /* Rack has other names for them, and an application must not see two values. */
        if (!IS(at, name_length, "HTTP_CONTENT_TYPE") && !IS(at, name_length, "HTTP_CONTENT_LENGTH")) {
            text = rb_str_new(value, (long)value_length);
            add(self, &all, name_of(self, &all, at, name_length), text);
            if (IS(at, name_length, "SERVER_PROTOCOL")) all.values[HTTP_VERSION] = text;
            else if (IS(at, name_length, "REQUEST_METHOD"))
                self->is_head = IS(value, value_length, "HEAD");
            else if (IS(at, name_length, "REQUEST_URI"))
                self->has_plain_path &= memchr(value, '%', value_length) == NULL;
            else if (IS(at, name_length, "PATH_INFO")) {
                path = text;
                self->has_plain_path &= is_plain_path(value, value_length);
            }
            else if (IS(at, name_length, "SCRIPT_NAME")) {
                is_script_empty = value_length == 0;
                self->has_plain_path &= is_plain_path(value, value_length);
            }
            else if (IS(at, name_length, "HTTPS")) is_https = IS(value, value_length, "on");
        }
        at = next + 1;
    }
    /* Rack demands one of both. Both are empty for `OPTIONS *`. */
    if (!NIL_P(path) && RSTRING_LEN(path) == 0 && is_script_empty) rb_str_cat(path, "/", 1);
    self->after_reply = all.values[AFTER_REPLY] = rb_ary_new();
    self->response_finished = all.values[RESPONSE_FINISHED] = rb_ary_new();
    end++;
    self->body = end < bytes + length ? rb_str_new(end, bytes + length - end) : Qnil;
    env = filled(self, &all);
    if (is_https) rb_hash_aset(env, key_url_scheme, rb_str_new_cstr("https"));
    return env;
}

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
 * Waits for the next request. Returns its environment, which the application may see: the request is
 * not given to another worker any more. Returns true if the request comes over the connection, false
 * if the worker must leave, and nil if a signal has come or nothing has come for a minute.
 */
static VALUE ring_take(VALUE object)
{
    ring_object *self = ring_of(object);
    turn taken = { self->ring, KIRIN_RING_INTERRUPTED };
    const char *bytes;
    size_t length;
    VALUE env;
    if (!self->ring) return Qfalse;
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
    env = environment(self, bytes, length);
    kirin_ring_begin(self->ring);
    return env;
}

/* Returns the bytes of the request's body, or nil if it has none. */
static VALUE ring_body(VALUE object)
{
    ring_object *self = ring_of(object);
    VALUE body = self->body;
    /* The application alone keeps it. */
    self->body = Qnil;
    return body;
}

/* Returns whether the path of the request is the same percent-encoded as it is decoded. */
static VALUE ring_has_plain_path(VALUE object)
{
    return ring_of(object)->has_plain_path ? Qtrue : Qfalse;
}

/* Returns the request's `rack.after_reply` and `rack.response_finished`. */
static VALUE ring_after(VALUE object)
{
    const ring_object *self = ring_of(object);
    return rb_assoc_new(self->after_reply, self->response_finished);
}

/* ------------------------------------------------------------------------ answers */

/* The bytes that the name of a field may have (RFC 9110 section 5.1). */
static unsigned char is_name_byte[256];

/* The bytes that Kirin::ResponseHead copies unchanged in a value. */
static unsigned char is_value_byte[256];

static void make_tables(void)
{
    const char *marks = "!#$%&'*+.^_`|~-";
    int byte;
    for (byte = '0'; byte <= '9'; byte++) is_name_byte[byte] = 1;
    for (byte = 'a'; byte <= 'z'; byte++) is_name_byte[byte] = is_name_byte[byte - 32] = 1;
    for (; *marks; marks++) is_name_byte[(unsigned char)*marks] = 1;
    for (byte = 0x20; byte < 256; byte++) is_value_byte[byte] = byte != 0x7F;
    is_value_byte['\t'] = 1;
    for (byte = '0'; byte <= '9'; byte++) is_path_byte[byte] = 1;
    for (byte = 'a'; byte <= 'z'; byte++) is_path_byte[byte] = is_path_byte[byte - 32] = 1;
    for (marks = "-._~!$&'()*+,;=:@/"; *marks; marks++) is_path_byte[(unsigned char)*marks] = 1;
}

/* Where the answer is written, and where its room ends. Not `is_plain`: Ruby must answer. */
typedef struct {
    char *at;
    char *end;
    int is_plain;
} output;

static int is_word(const char *bytes, size_t length, const char *small)
{
    size_t i;
    for (i = 0; i < length; i++)
        if ((bytes[i] | 0x20) != small[i]) return 0;
    return 1;
}

/* What Kirin::ResponseHead::KINDS says about a name. */
enum kind { A_FIELD, A_LENGTH, SPECIAL };

static enum kind kind_of(const char *name, size_t length)
{
    static const char *const special[] =
        { "connection", "keep-alive", "kirin-file", "kirin-cleanup", "transfer-encoding" };
    size_t i;
    if (length > 4 && is_word(name, 4, "rack") && name[4] == '.') return SPECIAL;
    if (length == 14 && is_word(name, length, "content-length")) return A_LENGTH;
    for (i = 0; i < sizeof special / sizeof *special; i++)
        if (length == strlen(special[i]) && is_word(name, length, special[i])) return SPECIAL;
    return A_FIELD;
}

/* Writes "NAME: ". Returns 0 if there is no room. */
static int write_name(output *to, const char *name, size_t length)
{
    if ((size_t)(to->end - to->at) < length + 2) return 0;
    memcpy(to->at, name, length);
    memcpy(to->at + length, ": ", 2);
    to->at += length + 2;
    return 1;
}

/* Writes the line, or several lines, of one value. Returns 0 if Ruby must do that. */
static int write_value(output *to, const char *name, size_t name_length, VALUE value)
{
    const char *bytes, *end;
    char number[32];
    size_t length;
    if (FIXNUM_P(value)) {
        length = (size_t)snprintf(number, sizeof number, "%ld", FIX2LONG(value));
        bytes = number;
    }
    else {
        if (SPECIAL_CONST_P(value) || BUILTIN_TYPE(value) != T_STRING
            || RBASIC_CLASS(value) != rb_cString || !rb_enc_asciicompat(rb_enc_get(value)))
            return 0;
        bytes = RSTRING_PTR(value);
        length = (size_t)RSTRING_LEN(value);
    }
    if (!write_name(to, name, name_length)) return 0;
    for (end = bytes + length; bytes < end; bytes++) {
        if (to->end - to->at < 4) return 0;
        if (is_value_byte[(unsigned char)*bytes]) *to->at++ = *bytes;
        else if (*bytes != '\n') return 0;
        else {
            /* Line ends separate the values of fields with the same name (Rack 2). */
            memcpy(to->at, "\r\n", 2);
            to->at += 2;
            if (!write_name(to, name, name_length)) return 0;
        }
    }
    if (to->end - to->at < 2) return 0;
    memcpy(to->at, "\r\n", 2);
    to->at += 2;
    return 1;
}

static int write_field(output *to, VALUE name, VALUE value)
{
    const char *bytes;
    size_t length, i;
    long index;
    if (SPECIAL_CONST_P(name) || BUILTIN_TYPE(name) != T_STRING) return 0;
    bytes = RSTRING_PTR(name);
    length = (size_t)RSTRING_LEN(name);
    for (i = 0; i < length; i++)
        if (!is_name_byte[(unsigned char)bytes[i]]) return 0;
    if (length == 0) return 0;
    switch (kind_of(bytes, length)) {
    case SPECIAL:
        return 0;
    case A_LENGTH:
        /* The length of the body is the correct one. */
        return FIXNUM_P(value) || (!SPECIAL_CONST_P(value) && RBASIC_CLASS(value) == rb_cString);
    case A_FIELD:
        break;
    }
    if (SPECIAL_CONST_P(value) || RBASIC_CLASS(value) != rb_cArray)
        return write_value(to, bytes, length, value);
    for (index = 0; index < RARRAY_LEN(value); index++)
        if (!write_value(to, bytes, length, RARRAY_AREF(value, index))) return 0;
    return 1;
}

static int write_field_of_hash(VALUE name, VALUE value, VALUE pointer)
{
    output *to = (output *)pointer;
    to->is_plain = write_field(to, name, value);
    return to->is_plain ? ST_CONTINUE : ST_STOP;
}

/* Writes the lines of all fields. Returns 0 if Ruby must do that. */
static int write_fields(output *to, VALUE headers)
{
    if (SPECIAL_CONST_P(headers) || BUILTIN_TYPE(headers) != T_HASH) return 0;
    /* Subclasses of Hash are usual, but they may have an `each` of their own. */
    if (RBASIC_CLASS(headers) != rb_cHash
        && !rb_method_basic_definition_p(CLASS_OF(headers), id_each))
        return 0;
    to->is_plain = 1;
    rb_hash_foreach(headers, write_field_of_hash, (VALUE)to);
    return to->is_plain;
}

/* Writes a complete answer into the slot. Returns its length, or 0 if Ruby must do that. */
static size_t write_answer(ring_object *self, VALUE status, VALUE headers, VALUE body)
{
    char *start = kirin_ring_room(self->ring);
    output to = { start, start + kirin_ring_room_bytes(self->ring), 1 };
    size_t total = 0;
    long code, i;

    if (!FIXNUM_P(status)) return 0;
    code = FIX2LONG(status);
    /* The others have no body, or are none. */
    if (code < 200 || code > 999 || code == 204 || code == 304) return 0;
    if (SPECIAL_CONST_P(body) || RBASIC_CLASS(body) != rb_cArray) return 0;
    if (to.end - to.at < 16) return 0;
    memcpy(to.at, "HTTP/1.1 ", 9);
    to.at[9] = (char)('0' + code / 100);
    to.at[10] = (char)('0' + code / 10 % 10);
    to.at[11] = (char)('0' + code % 10);
    memcpy(to.at + 12, "\r\n", 2);
    to.at += 14;
    if (!write_fields(&to, headers) || to.at - start > MOST_HEAD_BYTES) return 0;

    for (i = 0; i < RARRAY_LEN(body); i++) {
        VALUE part = RARRAY_AREF(body, i);
        if (SPECIAL_CONST_P(part) || BUILTIN_TYPE(part) != T_STRING) return 0;
        total += (size_t)RSTRING_LEN(part);
    }
    if (to.end - to.at < LENGTH_BYTES || (size_t)(to.end - to.at) - LENGTH_BYTES < total) return 0;
    to.at += sprintf(to.at, "Content-Length: %zu\r\n\r\n", total);
    for (i = 0; i < RARRAY_LEN(body); i++) {
        VALUE part = RARRAY_AREF(body, i);
        memcpy(to.at, RSTRING_PTR(part), (size_t)RSTRING_LEN(part));
        to.at += RSTRING_LEN(part);
    }
    return (size_t)(to.at - start);
}

/* Returns whether the application has work for the time after the response. */
static int has_work(const ring_object *self)
{
    return RARRAY_LEN(self->after_reply) > 0 || RARRAY_LEN(self->response_finished) > 0;
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
    if (!has_request(self) || self->is_head || has_work(self)) return Qfalse;
    length = write_answer(self, status, headers, body);
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

static VALUE kept(const char *text)
{
    VALUE string = rb_enc_interned_str_cstr(text, rb_utf8_encoding());
    rb_gc_register_mark_object(string);
    return string;
}

RUBY_FUNC_EXPORTED void Init_kirin_ring(void)
{
    VALUE ring = rb_define_class_under(rb_define_module("Kirin"), "Ring", rb_cObject);
    id_each = rb_intern("each");
    own_keys[HTTP_VERSION] = kept("HTTP_VERSION");
    own_keys[AFTER_REPLY] = kept("rack.after_reply");
    own_keys[RESPONSE_FINISHED] = kept("rack.response_finished");
    key_url_scheme = kept("rack.url_scheme");
    make_tables();
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
