/*
 * Perl's side of the ring (adapters/ring): takes a request apart into %env, and puts a plain
 * response together. Kirin::Worker::Response is the reference for responses. What is unusual is
 * left to it: then `answer` returns false and has done nothing.
 */
#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

#include "kirin_ring.h"

/* Names of variables whose hash values are kept. */
#define KNOWN_NAMES 256

/* The most bytes of a name that is kept. */
#define KNOWN_BYTES 64

typedef struct {
    kirin_ring *ring;
    /* Names and values that are the same in every request; the names have their hash values. */
    AV *always;
    SV *known[KNOWN_NAMES];
    /* The body of the present request, in the slot. */
    const char *body;
    STRLEN body_length;
} ring_object;

typedef ring_object *Kirin__Ring;

/* Returns the name as a value that has its hash with it. */
static SV *shared_name(pTHX_ ring_object *self, const char *name, STRLEN length, SV **mortal)
{
    unsigned index;
    SV *known;
    *mortal = NULL;
    if (length > KNOWN_BYTES || length == 0) {
        return *mortal = newSVpvn(name, length);
    }
    index = (unsigned)(length * 37 + (unsigned char)name[length - 1] * 11
        + (unsigned char)name[length / 2] * 5 + (unsigned char)name[0]) % KNOWN_NAMES;
    known = self->known[index];
    if (known && SvCUR(known) == length && memcmp(SvPVX(known), name, length) == 0)
        return known;
    /* A name that takes the place of another one: each keeps its own only for a while. */
    SvREFCNT_dec(known);
    return self->known[index] = newSVpvn_share(name, length, 0);
}

static void store(pTHX_ HV *env, SV *name, SV *value)
{
    U32 hash = SvIsCOW_shared_hash(name) ? SvSHARED_HASH(name) : 0;
    if (!hv_store_ent(env, name, value, hash)) SvREFCNT_dec(value);
}

/* Returns a reference to a new environment, or NULL if the bytes are no request. */
static SV *environment(pTHX_ ring_object *self, const char *bytes, STRLEN length)
{
    const char *at = memchr(bytes, ':', length), *end;
    HV *env;
    STRLEN block = 0;
    SSize_t i, count = av_count(self->always);
    const char *digit;
    if (!at || at == bytes || at - bytes > 7) return NULL;
    for (digit = bytes; digit < at; digit++) {
        if (*digit < '0' || *digit > '9') return NULL;
        block = block * 10 + (*digit - '0');
    }
    at++;
    /* The comma ends the head. */
    if (block >= (STRLEN)(bytes + length - at)) return NULL;
    end = at + block;
    self->body = end + 1;
    self->body_length = length - (self->body - bytes);
    env = newHV();
    hv_ksplit(env, 64);
    for (i = 0; i + 1 < count; i += 2)
        store(aTHX_ env, AvARRAY(self->always)[i], newSVsv(AvARRAY(self->always)[i + 1]));
    (void)hv_stores(env, "psgix.cleanup.handlers", newRV_noinc((SV *)newAV()));
    while (at < end) {
        const char *value = memchr(at, '\0', end - at), *next;
        SV *mortal, *name;
        if (!value) break;
        value++;
        next = memchr(value, '\0', end - value);
        if (!next) break;
        name = shared_name(aTHX_ self, at, value - at - 1, &mortal);
        store(aTHX_ env, name, newSVpvn(value, next - value));
        SvREFCNT_dec(mortal);
        at = next + 1;
    }
    if (hv_exists(env, "HTTPS", 5)) (void)hv_stores(env, "psgi.url_scheme", newSVpvs("https"));
    return newRV_noinc((SV *)env);
}

/* Returns the bytes of a plain value: a string or a number without magic or characters beyond 255. */
static const char *plain(pTHX_ SV *value, STRLEN *length)
{
    if (!value || SvROK(value) || SvMAGICAL(value) || SvUTF8(value) || isGV_with_GP(value))
        return NULL;
    if (!SvPOK(value) && !SvIOK(value) && !SvNOK(value)) return NULL;
    return SvPV_nomg_const(value, *length);
}

static AV *plain_array(pTHX_ SV *value)
{
    if (!value || !SvROK(value) || SvOBJECT(SvRV(value)) || SvTYPE(SvRV(value)) != SVt_PVAV)
        return NULL;
    return SvMAGICAL(SvRV(value)) ? NULL : (AV *)SvRV(value);
}

/* The bytes of a field name (RFC 9110 section 5.1), in lower case; 0 for others. */
static unsigned char name_byte[256];

static void make_name_bytes(void)
{
    const char *marks = "!#$%&'*+.^_`|~-";
    int byte;
    for (byte = '0'; byte <= '9'; byte++) name_byte[byte] = byte;
    for (byte = 'a'; byte <= 'z'; byte++) name_byte[byte] = name_byte[byte - 32] = byte;
    for (; *marks; marks++) name_byte[(unsigned char)*marks] = *marks;
}

/* Fields about framing, which Kirin::Worker::Response treats. Content-Length is of them. */
static int is_framing(const char *name, STRLEN length, int *is_length)
{
    static const char *const names[] = { "content-length", "transfer-encoding", "connection",
        "keep-alive", "kirin-cleanup", "kirin-file" };
    unsigned i;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        STRLEN at;
        if (strlen(names[i]) != length) continue;
        for (at = 0; at < length; at++)
            if (name_byte[(unsigned char)name[at]] != (unsigned char)names[i][at]) break;
        if (at == length) {
            *is_length = i == 0;
            return 1;
        }
    }
    return 0;
}

/* Copies a value of a field. Returns 0 if a byte may not be in one. */
static int copy_value(char *to, const char *from, STRLEN length)
{
    STRLEN i;
    unsigned char bad = 0;
    for (i = 0; i < length; i++) {
        unsigned char byte = from[i];
        bad |= (byte < 0x20 && byte != '\t') | (byte == 0x7F);
        to[i] = byte;
    }
    return !bad;
}

static int copy_name(char *to, const char *from, STRLEN length)
{
    STRLEN i;
    for (i = 0; i < length; i++) {
        if (!name_byte[(unsigned char)from[i]]) return 0;
        to[i] = from[i];
    }
    return length > 0;
}

/*
 * Writes a response into the room of the answer. Returns its length, or 0 if it is not plain or
 * does not fit.
 */
static STRLEN write_answer(pTHX_ ring_object *self, SV *response, int leaving)
{
    AV *parts = plain_array(aTHX_ response), *fields, *body;
    char *start = kirin_ring_room(self->ring), *at = start;
    char *end = start + kirin_ring_room_bytes(self->ring);
    const char *bytes;
    STRLEN length, total = 0;
    SSize_t i, count;

    if (!parts || av_count(parts) < 3) return 0;
    bytes = plain(aTHX_ AvARRAY(parts)[0], &length);
    fields = plain_array(aTHX_ AvARRAY(parts)[1]);
    body = plain_array(aTHX_ AvARRAY(parts)[2]);
    if (!bytes || !fields || !body || length != 3) return 0;
    if (bytes[0] < '2' || bytes[0] > '9' || bytes[1] < '0' || bytes[1] > '9' || bytes[2] < '0'
        || bytes[2] > '9')
        return 0;
    /* These have no body. */
    if (memcmp(bytes, "204", 3) == 0 || memcmp(bytes, "304", 3) == 0) return 0;
    memcpy(at, "HTTP/1.1 ", 9);
    memcpy(at + 9, bytes, 3);
    memcpy(at + 12, "\r\n", 2);
    at += 14;

    count = av_count(fields);
    if (count % 2) return 0;
    for (i = 0; i < count; i += 2) {
        STRLEN name_length;
        int is_length = 0;
        const char *name = plain(aTHX_ AvARRAY(fields)[i], &name_length);
        const char *value = plain(aTHX_ AvARRAY(fields)[i + 1], &length);
        if (!name || !value) return 0;
        if (is_framing(name, name_length, &is_length)) {
            if (!is_length) return 0;
            continue;
        }
        if ((STRLEN)(end - at) < name_length || (STRLEN)(end - at) - name_length < length + 4)
            return 0;
        if (!copy_name(at, name, name_length)) return 0;
        at += name_length;
        *at++ = ':';
        *at++ = ' ';
        if (!copy_value(at, value, length)) return 0;
        at += length;
        *at++ = '\r';
        *at++ = '\n';
    }

    count = av_count(body);
    for (i = 0; i < count; i++) {
        SV *part = AvARRAY(body)[i];
        if (part && !SvOK(part) && !SvMAGICAL(part)) continue;
        if (!plain(aTHX_ part, &length)) return 0;
        total += length;
    }
    /* "Content-Length: ", a number, line ends, "Connection: close" */
    if ((STRLEN)(end - at) < 80 || (STRLEN)(end - at) - 80 < total) return 0;
    at += sprintf(at, "Content-Length: %lu\r\n", (unsigned long)total);
    if (leaving) {
        memcpy(at, "Connection: close\r\n", 19);
        at += 19;
    }
    *at++ = '\r';
    *at++ = '\n';
    for (i = 0; i < count; i++) {
        SV *part = AvARRAY(body)[i];
        if (!part || !SvOK(part)) continue;
        bytes = SvPV_nomg_const(part, length);
        memcpy(at, bytes, length);
        at += length;
    }
    return at - start;
}

MODULE = Kirin::Ring    PACKAGE = Kirin::Ring

PROTOTYPES: DISABLE

BOOT:
    make_name_bytes();

void
end_with_parent(parent, milliseconds)
    int parent
    unsigned milliseconds
  CODE:
    kirin_ring_end_with_parent(parent, milliseconds);

SV *
attach(class, fd, parent)
    const char *class
    int fd
    int parent
  PREINIT:
    kirin_ring *ring;
    ring_object *self;
  CODE:
    ring = kirin_ring_attach(fd, parent);
    if (!ring) XSRETURN_UNDEF;
    Newxz(self, 1, ring_object);
    self->ring = ring;
    self->always = newAV();
    RETVAL = sv_setref_pv(newSV(0), class, self);
  OUTPUT:
    RETVAL

SV *
receive(fd, buffer, size, descriptor)
    int fd
    SV *buffer
    size_t size
    SV *descriptor
  PREINIT:
    ssize_t count;
    int received;
  CODE:
    sv_setpvs(buffer, "");
    count = kirin_ring_receive(fd, SvGROW(buffer, size + 1), size, &received);
    if (received == -1) sv_set_undef(descriptor);
    else sv_setiv(descriptor, received);
    if (count < 0) XSRETURN_UNDEF;
    SvCUR_set(buffer, count);
    *SvEND(buffer) = '\0';
    RETVAL = newSViv(count);
  OUTPUT:
    RETVAL

void
set_always(self, list)
    Kirin::Ring self
    AV *list
  PREINIT:
    SSize_t i, count;
  CODE:
    av_clear(self->always);
    count = av_count(list);
    for (i = 0; i + 1 < count; i += 2) {
        STRLEN length;
        const char *name = SvPV(AvARRAY(list)[i], length);
        av_push(self->always, newSVpvn_share(name, length, 0));
        av_push(self->always, newSVsv(AvARRAY(list)[i + 1]));
    }

SV *
take(self)
    Kirin::Ring self
  PREINIT:
    enum kirin_ring_turn turn;
    const char *bytes;
    size_t length;
  CODE:
    turn = kirin_ring_take(self->ring);
    if (turn == KIRIN_RING_INTERRUPTED) XSRETURN_UNDEF;
    if (turn != KIRIN_RING_REQUEST) XSRETURN_IV(turn == KIRIN_RING_CONNECTION);
    bytes = kirin_ring_request(self->ring, &length);
    RETVAL = environment(aTHX_ self, bytes, length);
    if (!RETVAL) croak("what came through the ring is no request head\n");
  OUTPUT:
    RETVAL

SV *
body(self)
    Kirin::Ring self
  CODE:
    /* Another request may be in the slot after the answer. */
    if (!kirin_ring_has_request(self->ring)) XSRETURN_UNDEF;
    RETVAL = newSVpvn(self->body, self->body_length);
  OUTPUT:
    RETVAL

void
begin(self)
    Kirin::Ring self
  CODE:
    kirin_ring_begin(self->ring);

bool
answer(self, response, leaving)
    Kirin::Ring self
    SV *response
    bool leaving
  PREINIT:
    STRLEN length = 0;
  CODE:
    if (kirin_ring_has_request(self->ring))
        length = write_answer(aTHX_ self, response, leaving);
    if (length) kirin_ring_answer(self->ring, length, 0);
    RETVAL = length > 0;
  OUTPUT:
    RETVAL

bool
answer_bytes(self, bytes, cleans_up)
    Kirin::Ring self
    SV *bytes
    bool cleans_up
  PREINIT:
    STRLEN length;
    const char *from;
  CODE:
    from = SvPVbyte(bytes, length);
    RETVAL = kirin_ring_has_request(self->ring) && length <= kirin_ring_room_bytes(self->ring);
    if (RETVAL) {
        memcpy(kirin_ring_room(self->ring), from, length);
        kirin_ring_answer(self->ring, length, cleans_up);
    }
  OUTPUT:
    RETVAL

bool
has_request(self)
    Kirin::Ring self
  CODE:
    RETVAL = kirin_ring_has_request(self->ring);
  OUTPUT:
    RETVAL

bool
over_connection(self)
    Kirin::Ring self
  CODE:
    RETVAL = kirin_ring_over_connection(self->ring);
  OUTPUT:
    RETVAL

void
cleaned_up(self)
    Kirin::Ring self
  CODE:
    kirin_ring_cleaned_up(self->ring);

void
DESTROY(self)
    Kirin::Ring self
  PREINIT:
    int i;
  CODE:
    kirin_ring_detach(self->ring);
    for (i = 0; i < KNOWN_NAMES; i++) SvREFCNT_dec(self->known[i]);
    SvREFCNT_dec((SV *)self->always);
    Safefree(self);
