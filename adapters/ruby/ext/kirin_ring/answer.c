/* Kirin::ResponseHead is the reference for responses. */
#include "answer.h"

#include <ruby/encoding.h>

#include <stdio.h>
#include <string.h>

/* The most bytes of a head, as in Kirin::ResponseHead. */
#define MOST_HEAD_BYTES (63 * 1024)

/* The most bytes of "Content-Length: NUMBER" and the line ends behind it. */
#define LENGTH_BYTES 48

static ID id_each;

/* The bytes that the name of a field may have (RFC 9110 section 5.1). */
static unsigned char is_name_byte[256];

/* The bytes that Kirin::ResponseHead copies unchanged in a value. */
static unsigned char is_value_byte[256];

void answer_prepare(void)
{
    const char *marks = "!#$%&'*+.^_`|~-";
    int byte;
    for (byte = '0'; byte <= '9'; byte++) is_name_byte[byte] = 1;
    for (byte = 'a'; byte <= 'z'; byte++) is_name_byte[byte] = is_name_byte[byte - 32] = 1;
    for (; *marks; marks++) is_name_byte[(unsigned char)*marks] = 1;
    for (byte = 0x20; byte < 256; byte++) is_value_byte[byte] = byte != 0x7F;
    is_value_byte['\t'] = 1;
    id_each = rb_intern("each");
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

size_t answer_write(char *start, size_t room, VALUE status, VALUE headers, VALUE body)
{
    output to = { start, start + room, 1 };
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
