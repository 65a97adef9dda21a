/* Writes plain responses of Rack. */
#ifndef ANSWER_H
#define ANSWER_H

#include <ruby.h>

#include <stddef.h>

/* Is called once, before the other. */
void answer_prepare(void);

/*
 * Writes a complete response to memory of `room` bytes. Returns its length, or 0 if it is too long
 * or not plain, so that Ruby must send it. No code of the application is called.
 */
size_t answer_write(char *start, size_t room, VALUE status, VALUE headers, VALUE body);

#endif
