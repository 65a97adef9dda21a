/*
 * The worker's side of the ring: requests and answers through memory that Kirin shares with the
 * workers of an application. docs/worker-protocol.md ("The ring") describes it.
 *
 * This is the only code that adapters of all languages share. It needs nothing but Linux and the
 * C library. A worker has one thread, one connection to Kirin, and one request at a time:
 *
 *     kirin_ring *ring = kirin_ring_attach(fd, parent);  after the greeting with "speaks=2"
 *     while (!stop) switch (kirin_ring_take(ring)) {
 *     case KIRIN_RING_REQUEST:                       kirin_ring_request() has its bytes
 *         kirin_ring_begin(ring);                    the application sees it from here on
 *         memcpy(kirin_ring_room(ring), answer, n);  at most kirin_ring_room_bytes()
 *         kirin_ring_answer(ring, n, 0);
 *         break;
 *     case KIRIN_RING_CONNECTION: ...                read it from the connection, answer there
 *     case KIRIN_RING_INTERRUPTED: break;            a signal has come
 *     case KIRIN_RING_LEAVE: stop = 1;
 *     }
 */
#ifndef KIRIN_RING_H
#define KIRIN_RING_H

#include <stddef.h>
#include <sys/types.h>

typedef struct kirin_ring kirin_ring;

/* What kirin_ring_take has found. */
enum kirin_ring_turn {
    KIRIN_RING_INTERRUPTED,  /* a signal or a minute has come while the worker slept */
    KIRIN_RING_LEAVE,        /* the worker must end; no more calls but kirin_ring_detach */
    KIRIN_RING_REQUEST,      /* a request is in the slot */
    KIRIN_RING_CONNECTION    /* a request comes over the connection, and so does its answer */
};

/*
 * Lets this process outlive its parent by `milliseconds` at most. When the parent ends, or if it has
 * ended already, the process gets SIGTERM, and SIGKILL after that time whatever it does then. A
 * process that it forks is not ended so. Call this at the start of a worker, and again after a change
 * of the user, with which Linux forgets it. The real-time signal with the highest number serves for
 * it.
 */
void kirin_ring_end_with_parent(pid_t parent, unsigned milliseconds);

/*
 * Reads what the front says after the greeting, and attaches to the ring that it offers. Blocks
 * until the front has said something. Answers "ring" or "socket".
 *
 * Returns NULL if everything goes over the connection: the front offers no ring (its first bytes,
 * which are those of a request, are left in the socket), the memory has another layout or cannot
 * be mapped, or the front has gone. The caller then serves the connection as without a ring. If
 * errno is EINTR, a signal has come first; the caller handles it and calls this again.
 *
 * `parent` is the process id of the worker's parent. The process gets SIGTERM when the parent ends
 * (PR_SET_PDEATHSIG), also if it has ended already; see kirin_ring_end_with_parent.
 */
kirin_ring *kirin_ring_attach(int fd, pid_t parent);

/*
 * Reads from the connection as read(2) does. A body in a file comes as a descriptor with the first
 * bytes of its request, to a worker that has said "body=descriptor" in its greeting. Puts it into
 * `descriptor`; or -1 if none has come, or -2 if one has come for which no number is left.
 */
ssize_t kirin_ring_receive(int fd, char *buffer, size_t size, int *descriptor);

/* Gives the memory back. The slot of a request that has no answer yet stays the worker's. */
void kirin_ring_detach(kirin_ring *ring);

/* Returns whether this process is the worker, and not one that the worker has forked. */
int kirin_ring_is_mine(const kirin_ring *ring);

/*
 * Takes the next request. Sleeps while there is none, for up to a minute: a signal that comes just
 * before the sleep does not end it. The request of the last call must have been answered. A process
 * that the worker has forked is told to leave, and so is a worker whose parent has ended.
 */
enum kirin_ring_turn kirin_ring_take(kirin_ring *ring);

/*
 * Returns the bytes of the request: the same as over a connection. They are in memory that others
 * can write, so the caller copies what it needs. Valid until the answer.
 */
const char *kirin_ring_request(const kirin_ring *ring, size_t *bytes);

/* Says that the application sees the request from now on. */
void kirin_ring_begin(kirin_ring *ring);

/* Returns whether the request in the slot waits for its answer, and this process is the worker. */
int kirin_ring_has_request(const kirin_ring *ring);

/* Returns the memory for the answer, and how many bytes it can have. */
char *kirin_ring_room(kirin_ring *ring);
size_t kirin_ring_room_bytes(const kirin_ring *ring);

/*
 * Sends the answer, of which `bytes` are in the room: status line, field lines and the complete
 * body. If `cleans_up`, the worker has more to do, and calls kirin_ring_cleaned_up at its end.
 */
void kirin_ring_answer(kirin_ring *ring, size_t bytes, int cleans_up);

/* Says that the worker has cleaned up after its answer. */
void kirin_ring_cleaned_up(kirin_ring *ring);

/*
 * Says that the answer comes over the connection. The slot is not the worker's any more. Returns
 * whether the caller may write the answer there: the request has no answer yet, and this process is
 * the worker. It may be called again for the same request.
 */
int kirin_ring_over_connection(kirin_ring *ring);

#endif
