/* Makes environments of Rack out of requests. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <ruby.h>

#include <stddef.h>
#include <stdint.h>

/* Names of variables that are kept as strings. */
#define KNOWN_NAMES 256

/* The most variables of a request whose names are compared with those of requests before. */
#define SHAPE_NAMES 96

/* How many sequences of names are kept. */
#define SHAPES 16

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

/* What requests have in common. */
typedef struct {
    /* What is the same in all environments. */
    VALUE constant;
    VALUE known[KNOWN_NAMES];
    shape shapes[SHAPES];
} environments;

/* What the worker must know of a request. */
typedef struct {
    /* The environment. */
    VALUE environment;
    /* The body, or nil. */
    VALUE body;
    /* Its `rack.after_reply` and `rack.response_finished`. */
    VALUE after_reply, response_finished;
    /* Whether the method is HEAD. */
    int is_head;
    /* Whether its path is the same percent-encoded as it is decoded. */
    int has_plain_path;
} rack_request;

/* Is called once, before all others. */
void environments_prepare(void);

/* Makes an object ready to be marked, without an allocation. */
void environments_init(environments *self);

void environments_mark(const environments *self);

/* Reads the bytes of a request. Raises ArgumentError if they are none. */
rack_request environments_read(environments *self, const char *bytes, size_t length);

#endif
