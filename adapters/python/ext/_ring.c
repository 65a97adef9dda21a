/*
 * Python's side of the ring (adapters/ring): takes a request apart into an environ, and puts a
 * complete response together. It uses only the stable ABI, so one build is for CPython 3.9 and all
 * later versions.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kirin_ring.h"

/* Names and values of variables that are kept as Python strings. */
#define KNOWN_TEXTS 512

/* The most bytes of a text that is kept. */
#define KNOWN_BYTES 64

/* The most bytes that `answer` writes besides the head and the body: "Content-Length: NUMBER". */
#define LENGTH_BYTES 48

typedef struct {
    PyObject_HEAD
    kirin_ring *ring;
    /* Texts that came before. A name or value that comes again needs no new object. */
    PyObject *known[KNOWN_TEXTS];
    char known_bytes[KNOWN_TEXTS][KNOWN_BYTES];
    unsigned char known_length[KNOWN_TEXTS];
    /* The body of the present request, in the slot. */
    const char *body;
    Py_ssize_t body_length;
} Ring;

/* Returns a text as a new reference. Bytes are Latin-1, as PEP 3333 wants. */
static PyObject *text(Ring *self, const char *bytes, size_t length)
{
    unsigned index;
    PyObject *made;
    if (length == 0 || length > KNOWN_BYTES) return PyUnicode_DecodeLatin1(bytes, length, NULL);
    index = (unsigned)(length * 37 + (unsigned char)bytes[length - 1] * 11
        + (unsigned char)bytes[length / 2] * 5 + (unsigned char)bytes[0]) % KNOWN_TEXTS;
    if (self->known[index] && self->known_length[index] == length
        && memcmp(self->known_bytes[index], bytes, length) == 0) {
        Py_INCREF(self->known[index]);
        return self->known[index];
    }
    made = PyUnicode_DecodeLatin1(bytes, length, NULL);
    if (!made) return NULL;
    /* A text takes the place of the one that was there: nobody can fill the memory. */
    Py_XDECREF(self->known[index]);
    Py_INCREF(made);
    self->known[index] = made;
    memcpy(self->known_bytes[index], bytes, length);
    self->known_length[index] = (unsigned char)length;
    return made;
}

/* Puts the names and values of a request head into a dict. Returns 0, or -1 with an exception. */
static int read_head(Ring *self, PyObject *environ, const char *bytes, size_t length)
{
    const char *at = memchr(bytes, ':', length < 8 ? length : 8), *digit, *end;
    size_t block = 0;
    if (!at || at == bytes) goto bad;
    for (digit = bytes; digit < at; digit++) {
        if (*digit < '0' || *digit > '9') goto bad;
        block = block * 10 + (size_t)(*digit - '0');
    }
    at++;
    /* The comma ends the head. */
    if (block >= (size_t)(bytes + length - at)) goto bad;
    end = at + block;
    self->body = end + 1;
    self->body_length = bytes + length - self->body;
    while (at < end) {
        const char *value = memchr(at, '\0', (size_t)(end - at)), *next;
        PyObject *name, *object;
        int result;
        if (!value) goto bad;
        value++;
        next = memchr(value, '\0', (size_t)(end - value));
        if (!next) goto bad;
        name = text(self, at, (size_t)(value - at - 1));
        if (!name) return -1;
        object = text(self, value, (size_t)(next - value));
        result = object ? PyDict_SetItem(environ, name, object) : -1;
        Py_DECREF(name);
        Py_XDECREF(object);
        if (result < 0) return -1;
        at = next + 1;
    }
    return 0;
bad:
    PyErr_SetString(PyExc_ValueError, "what came through the ring is no request head");
    return -1;
}

static PyObject *ring_take(PyObject *object, PyObject *constant)
{
    Ring *self = (Ring *)object;
    enum kirin_ring_turn turn;
    const char *bytes;
    size_t length;
    PyObject *environ;
    if (!PyDict_Check(constant)) {
        PyErr_SetString(PyExc_TypeError, "take() needs a dict");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    turn = kirin_ring_take(self->ring);
    Py_END_ALLOW_THREADS
    if (turn == KIRIN_RING_INTERRUPTED) Py_RETURN_NONE;
    if (turn != KIRIN_RING_REQUEST) return PyBool_FromLong(turn == KIRIN_RING_CONNECTION);
    environ = PyDict_Copy(constant);
    if (!environ) return NULL;
    bytes = kirin_ring_request(self->ring, &length);
    if (read_head(self, environ, bytes, length) < 0) {
        Py_DECREF(environ);
        return NULL;
    }
    return environ;
}

static PyObject *ring_body(PyObject *object, PyObject *Py_UNUSED(none))
{
    Ring *self = (Ring *)object;
    /* Another request may be in the slot after the answer. */
    if (!kirin_ring_has_request(self->ring)) Py_RETURN_NONE;
    return PyBytes_FromStringAndSize(self->body, self->body_length);
}

static PyObject *ring_begin(PyObject *object, PyObject *Py_UNUSED(none))
{
    kirin_ring_begin(((Ring *)object)->ring);
    Py_RETURN_NONE;
}

static PyObject *ring_answer(PyObject *object, PyObject *arguments)
{
    Ring *self = (Ring *)object;
    const char *head, *body;
    Py_ssize_t head_length, body_length;
    size_t room;
    char *at;
    if (!PyArg_ParseTuple(arguments, "y#y#:answer", &head, &head_length, &body, &body_length))
        return NULL;
    if (!kirin_ring_has_request(self->ring)) Py_RETURN_FALSE;
    room = kirin_ring_room_bytes(self->ring);
    if (room < LENGTH_BYTES || (size_t)head_length > room - LENGTH_BYTES
        || (size_t)body_length > room - LENGTH_BYTES - (size_t)head_length)
        Py_RETURN_FALSE;
    at = kirin_ring_room(self->ring);
    memcpy(at, head, (size_t)head_length);
    at += head_length;
    at += snprintf(at, LENGTH_BYTES, "Content-Length: %lu\r\n\r\n", (unsigned long)body_length);
    memcpy(at, body, (size_t)body_length);
    at += body_length;
    kirin_ring_answer(self->ring, (size_t)(at - kirin_ring_room(self->ring)), 0);
    Py_RETURN_TRUE;
}

static PyObject *ring_answer_bytes(PyObject *object, PyObject *arguments)
{
    Ring *self = (Ring *)object;
    const char *bytes;
    Py_ssize_t length;
    int cleans_up;
    if (!PyArg_ParseTuple(arguments, "y#p:answer_bytes", &bytes, &length, &cleans_up)) return NULL;
    if (!kirin_ring_has_request(self->ring)
        || (size_t)length > kirin_ring_room_bytes(self->ring))
        Py_RETURN_FALSE;
    memcpy(kirin_ring_room(self->ring), bytes, (size_t)length);
    kirin_ring_answer(self->ring, (size_t)length, cleans_up);
    Py_RETURN_TRUE;
}

static PyObject *ring_over_connection(PyObject *object, PyObject *Py_UNUSED(none))
{
    return PyBool_FromLong(kirin_ring_over_connection(((Ring *)object)->ring));
}

static PyObject *ring_cleaned_up(PyObject *object, PyObject *Py_UNUSED(none))
{
    kirin_ring_cleaned_up(((Ring *)object)->ring);
    Py_RETURN_NONE;
}

static void ring_free(PyObject *object)
{
    Ring *self = (Ring *)object;
    PyTypeObject *type = Py_TYPE(object);
    int i;
    if (self->ring) kirin_ring_detach(self->ring);
    for (i = 0; i < KNOWN_TEXTS; i++) Py_XDECREF(self->known[i]);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef ring_methods[] = {
    { "take", ring_take, METH_O,
      "take(constant)\n--\n\nWaits for the next request. Returns its environ, a copy of `constant`\n"
      "with the request's variables; True if the request comes over the connection, False if the\n"
      "worker must leave, and None if a signal has come or nothing has come for a minute." },
    { "body", ring_body, METH_NOARGS,
      "body()\n--\n\nReturns the bytes of the request's body; None after the answer." },
    { "begin", ring_begin, METH_NOARGS,
      "begin()\n--\n\nSays that the application sees the request from now on." },
    { "answer", ring_answer, METH_VARARGS,
      "answer(head, body)\n--\n\nAnswers with a head that lacks Content-Length and the empty line,\n"
      "and with a complete body. Returns False, and has done nothing, if they are too long or the\n"
      "answer has begun." },
    { "answer_bytes", ring_answer_bytes, METH_VARARGS,
      "answer_bytes(response, cleans_up)\n--\n\nAnswers with a complete response, like `answer`." },
    { "over_connection", ring_over_connection, METH_NOARGS,
      "over_connection()\n--\n\nSays that the answer comes over the connection. Returns whether it\n"
      "may be written there: the request has no answer yet, and this is not a forked process." },
    { "cleaned_up", ring_cleaned_up, METH_NOARGS,
      "cleaned_up()\n--\n\nSays that the cleanup after the answer is done." },
    { NULL, NULL, 0, NULL },
};

/* Only `attach` makes a ring. */
static PyObject *ring_new(PyTypeObject *Py_UNUSED(type), PyObject *Py_UNUSED(arguments),
    PyObject *Py_UNUSED(keywords))
{
    PyErr_SetString(PyExc_TypeError, "a Ring comes from kirin._ring.attach");
    return NULL;
}

static PyType_Slot ring_slots[] = {
    { Py_tp_new, ring_new },
    { Py_tp_dealloc, ring_free },
    { Py_tp_methods, ring_methods },
    { Py_tp_doc, "Requests and answers through memory that Kirin shares with its workers." },
    { 0, NULL },
};

static PyType_Spec ring_spec = {
    "kirin._ring.Ring", sizeof(Ring), 0, Py_TPFLAGS_DEFAULT, ring_slots,
};

static PyObject *ring_type;

static PyObject *attach(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    int fd, parent;
    int is_interrupted;
    kirin_ring *ring;
    Ring *self;
    if (!PyArg_ParseTuple(arguments, "ii:attach", &fd, &parent)) return NULL;
    do {
        Py_BEGIN_ALLOW_THREADS
        ring = kirin_ring_attach(fd, parent);
        Py_END_ALLOW_THREADS
        is_interrupted = !ring && errno == EINTR;
        /* A handler may raise an exception, which ends the wait. It may also change errno. */
        if (is_interrupted && PyErr_CheckSignals() < 0) return NULL;
    } while (is_interrupted);
    if (!ring) Py_RETURN_NONE;
    self = PyObject_Malloc(sizeof *self);
    if (!self) {
        kirin_ring_detach(ring);
        return PyErr_NoMemory();
    }
    memset(self, 0, sizeof *self);
    PyObject_Init((PyObject *)self, (PyTypeObject *)ring_type);
    self->ring = ring;
    return (PyObject *)self;
}

static PyObject *end_with_parent(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    int parent;
    unsigned milliseconds;
    if (!PyArg_ParseTuple(arguments, "iI:end_with_parent", &parent, &milliseconds)) return NULL;
    kirin_ring_end_with_parent(parent, milliseconds);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "attach", attach, METH_VARARGS,
      "attach(fd, parent)\n--\n\nReturns the ring that the front offers on a connection after the\n"
      "greeting, or None if it offers none. The process gets TERM when `parent` ends." },
    { "end_with_parent", end_with_parent, METH_VARARGS,
      "end_with_parent(parent, milliseconds)\n--\n\nLets this process outlive `parent` by this time\n"
      "at most: it gets TERM when that ends, and KILL at the end of the time." },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "kirin._ring",
    "The ring of Kirin's worker protocol (docs/worker-protocol.md).", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__ring(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    ring_type = PyType_FromSpec(&ring_spec);
    if (!ring_type) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
