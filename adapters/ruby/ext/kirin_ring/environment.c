/* Kirin::RackEnvironment is the reference for environments, and Kirin::RackPath for paths. */
#include "environment.h"

#include <ruby/encoding.h>
#include <ruby/st.h>

#include <string.h>

/* The most bytes of a name that is kept. */
#define KNOWN_BYTES 64

/* The values of an environment that come before those of the request. */
enum { HTTP_VERSION, AFTER_REPLY, RESPONSE_FINISHED, OWN_VALUES };

static VALUE own_keys[OWN_VALUES], key_url_scheme;

/* The bytes of a path that are not percent-encoded. */
static unsigned char is_path_byte[256];

static VALUE kept(const char *text)
{
    VALUE string = rb_enc_interned_str_cstr(text, rb_utf8_encoding());
    rb_gc_register_mark_object(string);
    return string;
}

void environments_prepare(void)
{
    const char *marks = "-._~!$&'()*+,;=:@/";
    int byte;
    own_keys[HTTP_VERSION] = kept("HTTP_VERSION");
    own_keys[AFTER_REPLY] = kept("rack.after_reply");
    own_keys[RESPONSE_FINISHED] = kept("rack.response_finished");
    key_url_scheme = kept("rack.url_scheme");
    for (byte = '0'; byte <= '9'; byte++) is_path_byte[byte] = 1;
    for (byte = 'a'; byte <= 'z'; byte++) is_path_byte[byte] = is_path_byte[byte - 32] = 1;
    for (; *marks; marks++) is_path_byte[(unsigned char)*marks] = 1;
}

void environments_init(environments *self)
{
    int i;
    self->constant = Qnil;
    for (i = 0; i < KNOWN_NAMES; i++) self->known[i] = Qnil;
    for (i = 0; i < SHAPES; i++) self->shapes[i].environment = Qnil;
}

void environments_mark(const environments *self)
{
    int i;
    rb_gc_mark(self->constant);
    for (i = 0; i < KNOWN_NAMES; i++) rb_gc_mark(self->known[i]);
    /* The names are compared by address, so they must not move. */
    for (i = 0; i < SHAPES; i++) {
        const shape *one = &self->shapes[i];
        rb_gc_mark_locations(one->names, one->names + one->count);
        rb_gc_mark(one->environment);
    }
}

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
static VALUE name_of(environments *self, variables *all, const char *bytes, size_t length)
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
static VALUE looked_up(const environments *self, const variables *all)
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
static void keep_shape(const environments *self, shape *one, const variables *all)
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
static const shape *shape_of(environments *self, const variables *all)
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
static VALUE filled(environments *self, const variables *all)
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

static void add(environments *self, variables *all, VALUE name, VALUE value)
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

rack_request environments_read(environments *self, const char *bytes, size_t length)
{
    const char *at = memchr(bytes, ':', length < 8 ? length : 8), *digit, *end;
    size_t block = 0;
    variables all;
    rack_request request;
    VALUE path = Qnil;
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
    request.is_head = 0;
    request.has_plain_path = 1;
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
        if (!IS(at, name_length, "HTTP_CONTENT_TYPE")
            && !IS(at, name_length, "HTTP_CONTENT_LENGTH")) {
            text = rb_str_new(value, (long)value_length);
            add(self, &all, name_of(self, &all, at, name_length), text);
            if (IS(at, name_length, "SERVER_PROTOCOL")) all.values[HTTP_VERSION] = text;
            else if (IS(at, name_length, "REQUEST_METHOD"))
                request.is_head = IS(value, value_length, "HEAD");
            else if (IS(at, name_length, "REQUEST_URI"))
                request.has_plain_path &= memchr(value, '%', value_length) == NULL;
            else if (IS(at, name_length, "PATH_INFO")) {
                path = text;
                request.has_plain_path &= is_plain_path(value, value_length);
            }
            else if (IS(at, name_length, "SCRIPT_NAME")) {
                is_script_empty = value_length == 0;
                request.has_plain_path &= is_plain_path(value, value_length);
            }
            else if (IS(at, name_length, "HTTPS")) is_https = IS(value, value_length, "on");
        }
        at = next + 1;
    }
    /* Rack demands one of both. Both are empty for `OPTIONS *`. */
    if (!NIL_P(path) && RSTRING_LEN(path) == 0 && is_script_empty) rb_str_cat(path, "/", 1);
    request.after_reply = all.values[AFTER_REPLY] = rb_ary_new();
    request.response_finished = all.values[RESPONSE_FINISHED] = rb_ary_new();
    end++;
    request.body = end < bytes + length ? rb_str_new(end, bytes + length - end) : Qnil;
    request.environment = filled(self, &all);
    if (is_https) rb_hash_aset(request.environment, key_url_scheme, rb_str_new_cstr("https"));
    return request;
}
