/*
 * The front's side of the ring, for tests: one process with one thread that trusts its workers.
 * The real one is crates/kirin-ring.
 */
#ifndef FRONT_H
#define FRONT_H

#include <stddef.h>
#include <stdint.h>

/* The words of a slot, and the phases. */
enum { CLAIM, PHASE, REQUEST, REQUEST_LENGTH, CLAIMED_AT, ANSWER_LENGTH };
enum { QUEUED, RUNNING, ANSWERED, CLEANED_UP, OVER_CONNECTION, ANSWERED_CLEANS_UP };

/* The owner of a request that the front has withdrawn, and of one in the queue. */
#define WITHDRAWN 65535
#define NOBODY 0

/* The words at the start of the file. */
#define HEADER_WORDS 17

typedef struct {
    char *memory;
    uint64_t header[HEADER_WORDS];
    int file;
    int *eventfds;
    uint64_t next;
    uint64_t *positions;
} front;

/* Makes the memory. Ends the process if that is not possible. */
void front_create(front *f, unsigned slots, unsigned seats, unsigned loops, size_t request_bytes,
    size_t answer_bytes);

/* Offers a seat over a connection. Returns whether the worker has taken it. */
int front_offer(front *f, int fd, unsigned seat);

/* Sends only the line and the descriptors, whatever they are. */
void front_send(int fd, const char *line, const int *descriptors, unsigned count);

/* Reads a line, without its end. Returns 0 if the connection has ended. */
int front_read_line(int fd, char *line, size_t size);

/* Puts a request into a free slot. NULL stands for one that comes over the connection. */
void front_put(front *f, unsigned slot, unsigned loop, const void *request, size_t length);

/* Takes a request back. Returns 0 if a worker has it. */
int front_withdraw(front *f, unsigned slot);

/* Returns the owner of a slot: NOBODY, WITHDRAWN, or a seat + 1. */
unsigned front_owner(const front *f, unsigned slot);

/* Returns a word of a slot. */
uint64_t front_word(const front *f, unsigned slot, int word);

/* Returns the room of the answer. */
const char *front_answer(const front *f, unsigned slot);

/*
 * Takes the number of a slot that was reported to any loop, or returns -1. Waits for one for up to
 * `milliseconds`, as an event loop does, or until `extra` can be read, unless that is -1.
 */
int front_finished(front *f, int milliseconds, int extra);

/* Lets a worker take requests: at first, and when its answer has come over the connection. */
void front_let_go(front *f, unsigned seat);

/* Tells a worker to leave. */
void front_dismiss(front *f, unsigned seat);

/* Makes a seat ready for another worker. */
void front_clear_seat(front *f, unsigned seat);

/* Wakes a worker if a request waits. */
void front_wake_for_waiting(front *f);

#endif
