#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kirin_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* A message carries at most this many descriptors (SCM_MAX_FD in unix(7)). */
#define MAX_DESCRIPTORS 253

/* The longest line of an offer. */
#define MAX_LINE 64

/* The first descriptor that is not one of the standard streams. */
#define FIRST_DESCRIPTOR 3

/* The longest sleep in seconds. Tests set another one. */
#ifndef MAX_SLEEP
#define MAX_SLEEP 60
#endif

/* The words at the start of the file. */
enum { MAGIC, LAYOUT, TOTAL, CELLS, SLOTS, SEATS, LOOPS, REQUEST_BYTES, ANSWER_BYTES, QUEUE,
    SEAT_WORDS, SLEEPERS, LOOP_WORDS, FINISHED, FINISHED_STRIDE, SLOT_WORDS, ROOMS, HEADER_WORDS };

/* The offset of the position of the first request that may still be in the queue. */
#define HEAD_OFFSET 256

/* The offset of the word that is 1 while a worker that was woken has not looked yet. */
#define WAKING_OFFSET 320

/* A request that takes less than this many nanoseconds is fast. Tests set another limit. */
#ifndef FAST_NS
#define FAST_NS 50000
#endif

/* The bytes of the words of a seat, a loop or a slot. */
#define LINE 64

/* The words of a slot. */
enum { CLAIM, PHASE, REQUEST, REQUEST_LENGTH, CLAIMED_AT, ANSWER_LENGTH };

/* Word 1 of a seat: whether the worker takes requests. */
enum { COMMAND_WAIT, COMMAND_LEAVE, COMMAND_GO };

enum { PHASE_RUNNING = 1, PHASE_ANSWERED, PHASE_CLEANED_UP, PHASE_CONNECTION, PHASE_CLEANS_UP };

/* Below the position in a claim or a cell are the owner or the slot. */
#define NUMBER_BITS 16

static const uint64_t magic = 0x474e524e4952494bull; /* "KIRINRNG" */

struct kirin_ring {
    char *memory;
    uint64_t header[HEADER_WORDS];
    uint32_t seat;
    pid_t parent;
    int *eventfds;
    /* A page that is zero in processes that the worker has forked. */
    volatile char *is_mine;
    /* The present request: its slot, the loop that waits for it, and how far it is. */
    uint32_t slot;
    uint32_t loop;
    enum { NO_REQUEST, IN_SLOT, ON_CONNECTION, CLEANS_UP } state;
    /* When the last request was claimed, and whether those that followed each other were fast. */
    uint64_t claimed_at_ns;
    int is_fast;
};

static uint64_t *word(const kirin_ring *ring, uint64_t offset)
{
    return (uint64_t *)(void *)(ring->memory + offset);
}

static uint64_t load(uint64_t *at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }

static int swap_if(uint64_t *at, uint64_t old, uint64_t new)
{
    return __atomic_compare_exchange_n(at, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static uint64_t *slot_word(const kirin_ring *ring, uint32_t slot, unsigned which)
{
    return word(ring, ring->header[SLOT_WORDS] + (uint64_t)slot * LINE + 8u * which);
}

static uint32_t *seat_futex(const kirin_ring *ring, uint64_t seat)
{
    return (uint32_t *)word(ring, ring->header[SEAT_WORDS] + seat * LINE);
}

static char *room(const kirin_ring *ring, uint32_t slot)
{
    uint64_t bytes = ring->header[REQUEST_BYTES] + ring->header[ANSWER_BYTES];
    return ring->memory + ring->header[ROOMS] + slot * bytes;
}

/* ------------------------------------------------------------------------ the parent's end */

/* What kirin_ring_end_with_parent was told, for the handler. */
static struct {
    pid_t process;
    pid_t parent;
    int timer;
    struct itimerspec limit;
    int signal;
} ending;

/*
 * Starts the timer and asks the process to end. The timer sends SIGKILL, so it ends also a process
 * that handles no signals any more. Only functions that a handler may call are called here.
 */
static void parent_has_ended(int number)
{
    const int error = errno;
    (void)number;
    if (getpid() == ending.process && getppid() != ending.parent) {
        syscall(SYS_timer_settime, ending.timer, 0, &ending.limit, NULL);
        kill(getpid(), SIGTERM);
    }
    errno = error;
}

/* Has this process signalled when its parent ends, also if that has ended already. */
static void set_death_signal(pid_t parent)
{
    const int signal = ending.process == getpid() ? ending.signal : SIGTERM;
    prctl(PR_SET_PDEATHSIG, signal);
    if (getppid() != parent) kill(getpid(), signal);
}

void kirin_ring_end_with_parent(pid_t parent, unsigned milliseconds)
{
    struct sigevent event;
    struct sigaction action;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    memset(&action, 0, sizeof action);
    action.sa_handler = parent_has_ended;
    sigemptyset(&action.sa_mask);
    ending.signal = SIGRTMAX;
    ending.parent = parent;
    /* A time of 0 would stop the timer. */
    ending.limit.it_value.tv_sec = milliseconds / 1000;
    ending.limit.it_value.tv_nsec = (milliseconds % 1000) * 1000000L + 1;
    /* Without a timer or a handler, the process still gets SIGTERM. */
    if (ending.process != getpid()
        && syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &ending.timer) == 0
        && sigaction(ending.signal, &action, NULL) == 0) {
        sigset_t own;
        sigemptyset(&own);
        sigaddset(&own, ending.signal);
        sigprocmask(SIG_UNBLOCK, &own, NULL);
        ending.process = getpid();
    }
    set_death_signal(parent);
}

/* ------------------------------------------------------------------------ attaching */

/* Returns whether `count` things of `bytes` each lie at `offset` within the file. */
static int fits(uint64_t total, uint64_t offset, uint64_t count, uint64_t bytes)
{
    return offset % 8 == 0 && offset <= total && count <= (total - offset) / bytes;
}

static int is_good(const uint64_t *h, uint64_t size, int loops)
{
    uint64_t bits;
    if (h[MAGIC] != magic || h[LAYOUT] != 1 || h[TOTAL] != size) return 0;
    if (h[CELLS] == 0 || (h[CELLS] & (h[CELLS] - 1)) != 0) return 0;
    if (h[SLOTS] < 1 || h[SLOTS] > 65535 || h[SEATS] < 1 || h[SEATS] > 65533) return 0;
    if (h[LOOPS] < 1 || h[LOOPS] != (uint64_t)loops) return 0;
    if (h[REQUEST_BYTES] % 8 != 0 || h[ANSWER_BYTES] % 8 != 0) return 0;
    if (h[REQUEST_BYTES] < LINE || h[REQUEST_BYTES] > size) return 0;
    if (h[ANSWER_BYTES] < LINE || h[ANSWER_BYTES] > size) return 0;
    bits = 8 * ((h[SLOTS] + 63) / 64);
    return bits <= h[FINISHED_STRIDE] && h[FINISHED_STRIDE] <= size && h[FINISHED_STRIDE] % 8 == 0
        && fits(size, h[QUEUE], h[CELLS], 8)
        && fits(size, h[SEAT_WORDS], h[SEATS], LINE)
        && fits(size, h[SLEEPERS], (h[SEATS] + 63) / 64, 8)
        && fits(size, h[LOOP_WORDS], h[LOOPS], LINE)
        && fits(size, h[FINISHED], h[LOOPS], h[FINISHED_STRIDE])
        && fits(size, h[SLOT_WORDS], h[SLOTS], LINE)
        && fits(size, h[ROOMS], h[SLOTS], h[REQUEST_BYTES] + h[ANSWER_BYTES]);
}

/*
 * Receives a message of one line with its descriptors. Returns how many there are, or -1 if the
 * front says something else; errno is EINTR if a signal has come first.
 */
static int receive(int fd, char *line, size_t size, int *descriptors)
{
    union {
        char bytes[CMSG_SPACE(MAX_DESCRIPTORS * sizeof(int))];
        struct cmsghdr alignment;
    } control;
    struct iovec part = { line, size - 1 };
    struct msghdr message;
    struct cmsghdr *header;
    ssize_t bytes;
    size_t count = 0;

    /* A request is not ours to read: it begins with a digit. */
    bytes = recv(fd, line, 1, MSG_PEEK);
    if (bytes < 0) return -1;
    errno = 0;
    if (bytes == 0 || line[0] != 'K') return -1;
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    do bytes = recvmsg(fd, &message, MSG_CMSG_CLOEXEC); while (bytes < 0 && errno == EINTR);
    if (bytes < 0) bytes = 0;
    line[bytes] = '\0';
    for (header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        size_t received = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        memcpy(descriptors + count, CMSG_DATA(header), received * sizeof(int));
        count += received;
    }
    return (int)count;
}

/* Maps the memory, or returns 0. */
static int map(kirin_ring *ring, int file, int loops)
{
    struct stat state;
    const int access = PROT_READ | PROT_WRITE;
    void *memory;
    if (fstat(file, &state) != 0 || state.st_size < 4096) return 0;
    /* The size must not change, or an access could end the process. */
    if ((fcntl(file, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
        return 0;
    memory = mmap(NULL, state.st_size, access, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return 0;
    ring->memory = memory;
    memcpy(ring->header, memory, sizeof ring->header);
    if (is_good(ring->header, state.st_size, loops) && ring->seat < ring->header[SEATS]) return 1;
    munmap(memory, state.st_size);
    ring->memory = NULL;
    return 0;
}

/* Makes the page that tells the worker from its children, or returns 0. */
static int mark_as_mine(kirin_ring *ring)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    long bytes = sysconf(_SC_PAGESIZE);
    char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (page == MAP_FAILED) return 0;
    if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
        munmap(page, bytes);
        return 0;
    }
    *page = 1;
    ring->is_mine = page;
    return 1;
}

static void say(int fd, const char *line)
{
    ssize_t sent;
    do sent = send(fd, line, strlen(line), MSG_NOSIGNAL); while (sent < 0 && errno == EINTR);
}

/*
 * Moves the descriptors away from those of the standard streams, which an application may have
 * closed: what a library writes to its STDERR must not get into an eventfd. Returns 0 if there are
 * no descriptors left.
 */
static int move_above_standard(int *descriptors, int count)
{
    int i;
    for (i = 0; i < count; i++) {
        int moved;
        if (descriptors[i] >= FIRST_DESCRIPTOR) continue;
        moved = fcntl(descriptors[i], F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
        if (moved < 0) return 0;
        close(descriptors[i]);
        descriptors[i] = moved;
    }
    return 1;
}

/* Reads the seat in the line of an offer, or returns 0. */
static int read_seat(const char *line, uint32_t *seat)
{
    int length = 0;
    return sscanf(line, "KIRIN/2 seat=%5" SCNu32 "\n%n", seat, &length) == 1 && length > 0
        && line[length - 1] == '\n' && line[length] == '\0';
}

kirin_ring *kirin_ring_attach(int fd, pid_t parent)
{
    char line[MAX_LINE];
    int descriptors[MAX_DESCRIPTORS];
    int i, count, loops, is_attached;
    kirin_ring *ring;

    count = receive(fd, line, sizeof line, descriptors);
    if (count < 0) return NULL;
    loops = count - 1;
    ring = calloc(1, sizeof *ring);
    is_attached = ring != NULL && loops >= 1 && read_seat(line, &ring->seat)
        && move_above_standard(descriptors, count)
        && map(ring, descriptors[0], loops) && mark_as_mine(ring)
        && (ring->eventfds = malloc((size_t)loops * sizeof(int))) != NULL;
    if (count > 0) close(descriptors[0]);
    if (!is_attached) {
        for (i = 1; i < count; i++) close(descriptors[i]);
        if (ring) kirin_ring_detach(ring);
        say(fd, "socket\n");
        errno = 0;
        return NULL;
    }
    memcpy(ring->eventfds, descriptors + 1, (size_t)loops * sizeof(int));
    ring->parent = parent;
    /* A worker that sleeps does not see the end of its connection. */
    set_death_signal(parent);
    say(fd, "ring\n");
    return ring;
}

ssize_t kirin_ring_receive(int fd, char *buffer, size_t size, int *descriptor)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr alignment;
    } control;
    struct iovec part = { buffer, size };
    struct msghdr message;
    struct cmsghdr *header;
    ssize_t count;

    *descriptor = -1;
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    count = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (count < 0) return count;
    header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS
        && header->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(descriptor, CMSG_DATA(header), sizeof(int));
        if (!move_above_standard(descriptor, 1)) {
            close(*descriptor);
            *descriptor = -2;
        }
    }
    else if (message.msg_flags & MSG_CTRUNC) *descriptor = -2;
    return count;
}

void kirin_ring_detach(kirin_ring *ring)
{
    uint64_t i;
    if (ring->eventfds)
        for (i = 0; i < ring->header[LOOPS]; i++) close(ring->eventfds[i]);
    if (ring->memory) munmap(ring->memory, ring->header[TOTAL]);
    if (ring->is_mine) munmap((void *)ring->is_mine, sysconf(_SC_PAGESIZE));
    free(ring->eventfds);
    free(ring);
}

int kirin_ring_is_mine(const kirin_ring *ring) { return *ring->is_mine; }

/* ------------------------------------------------------------------------ requests */

/*
 * Returns whether there is a request that nobody has claimed, with its position and slot. The head
 * is moved past those that somebody has claimed.
 */
static int first_in_queue(const kirin_ring *ring, uint64_t *position, uint32_t *slot)
{
    uint64_t *head = word(ring, HEAD_OFFSET);
    uint64_t cells = ring->header[CELLS];
    uint64_t tries;
    for (tries = 0; tries <= cells; tries++) {
        uint64_t at = load(head);
        uint64_t cell = load(word(ring, ring->header[QUEUE] + 8 * (at & (cells - 1))));
        uint32_t number = cell & 0xFFFF;
        if (cell >> NUMBER_BITS != at || number >= ring->header[SLOTS]) {
            if (load(head) == at) return 0;
            continue;
        }
        if (load(slot_word(ring, number, CLAIM)) == at << NUMBER_BITS) {
            *position = at;
            *slot = number;
            return 1;
        }
        swap_if(head, at, at + 1);
    }
    return 0;
}

/* Wakes the sleeping worker with the lowest number. Returns whether there is one. */
static int wake_sleeper(const kirin_ring *ring)
{
    uint64_t i, words = (ring->header[SEATS] + 63) / 64;
    for (i = 0; i < words; i++) {
        uint64_t *at = word(ring, ring->header[SLEEPERS] + 8 * i);
        /* Each bit is tried once: a worker that falls asleep later looks at the queue itself. */
        uint64_t sleepers = load(at);
        while (sleepers != 0) {
            uint64_t bit = sleepers & -sleepers;
            sleepers &= ~bit;
            uint64_t seat = 64 * i + __builtin_ctzll(bit);
            if (!(__atomic_fetch_and(at, ~bit, __ATOMIC_SEQ_CST) & bit)) continue;
            if (seat >= ring->header[SEATS]) continue;
            __atomic_fetch_add(seat_futex(ring, seat), 1, __ATOMIC_SEQ_CST);
            syscall(SYS_futex, seat_futex(ring, seat), FUTEX_WAKE, 1, NULL, NULL, 0);
            return 1;
        }
    }
    return 0;
}

/*
 * Wakes another worker if there is a request for it. While one has been woken and has not looked
 * yet, that is enough: it wakes the next.
 */
static void wake_for_waiting(const kirin_ring *ring)
{
    uint64_t position, *waking = word(ring, WAKING_OFFSET);
    uint32_t slot;
    if (load(waking) != 0 || !first_in_queue(ring, &position, &slot)) return;
    if (swap_if(waking, 0, 1) && !wake_sleeper(ring))
        __atomic_store_n(waking, 0, __ATOMIC_SEQ_CST);
}

static uint64_t *command_word(const kirin_ring *ring)
{
    return word(ring, ring->header[SEAT_WORDS] + (uint64_t)ring->seat * LINE + 8);
}

/* Returns what the front says to this worker. A process that the worker has forked must leave. */
static uint64_t command(const kirin_ring *ring)
{
    return *ring->is_mine ? load(command_word(ring)) : COMMAND_LEAVE;
}

/* Claims the first request of the queue. Returns whether there was one. */
static int claim(kirin_ring *ring)
{
    uint64_t position;
    uint32_t slot;
    while (first_in_queue(ring, &position, &slot)) {
        uint64_t nobody = position << NUMBER_BITS;
        int is_ours = swap_if(slot_word(ring, slot, CLAIM), nobody, nobody | (ring->seat + 1));
        swap_if(word(ring, HEAD_OFFSET), position, position + 1);
        if (is_ours) {
            ring->slot = slot;
            return 1;
        }
    }
    return 0;
}

/* Says that the loop that waits for the request can look at its slot. */
static void report(kirin_ring *ring)
{
    const uint64_t one = 1;
    uint64_t bits = ring->header[FINISHED] + ring->header[FINISHED_STRIDE] * ring->loop;
    uint64_t *asleep = word(ring, ring->header[LOOP_WORDS] + (uint64_t)ring->loop * LINE);
    uint64_t bit = 1ull << (ring->slot % 64);
    __atomic_fetch_or(word(ring, bits + 8 * (ring->slot / 64)), bit, __ATOMIC_SEQ_CST);
    if (__atomic_exchange_n(asleep, 0, __ATOMIC_SEQ_CST) == 1) {
        /* The counter never gets full: the front would have to sleep through 2^64 answers. */
        while (write(ring->eventfds[ring->loop], &one, sizeof one) < 0 && errno == EINTR) { }
    }
}

static void set_phase(kirin_ring *ring, uint64_t phase)
{
    __atomic_store_n(slot_word(ring, ring->slot, PHASE), phase, __ATOMIC_RELEASE);
}

/*
 * Waits until the futex has another value, a signal comes, or MAX_SLEEP is over. Returns 0 after a
 * signal, and at the end of the time, since a signal may have come just before the wait.
 */
static int wait_for(const uint32_t *futex, uint32_t value)
{
    const struct timespec limit = { MAX_SLEEP, 0 };
    return syscall(SYS_futex, futex, FUTEX_WAIT, value, &limit, NULL, 0) == 0
        || (errno != EINTR && errno != ETIMEDOUT);
}

/*
 * Sleeps as wait_for does, unless there is a request. `value` is that of the futex before the
 * caller has looked.
 */
static int sleep_until_woken(const kirin_ring *ring, const uint32_t *futex, uint32_t value)
{
    uint64_t *sleepers = word(ring, ring->header[SLEEPERS] + 8 * (ring->seat / 64));
    const uint64_t bit = 1ull << (ring->seat % 64);
    uint64_t position;
    uint32_t slot;
    int goes_on = 1;

    __atomic_fetch_or(sleepers, bit, __ATOMIC_SEQ_CST);
    if (!first_in_queue(ring, &position, &slot) && command(ring) == COMMAND_GO)
        goes_on = wait_for(futex, value);
    /* Its bit is gone if somebody has woken it. It looks now, or wakes another one. */
    if (!(__atomic_fetch_and(sleepers, ~bit, __ATOMIC_SEQ_CST) & bit)) {
        __atomic_store_n(word(ring, WAKING_OFFSET), 0, __ATOMIC_SEQ_CST);
        if (!goes_on) wake_for_waiting(ring);
    }
    return goes_on;
}

/* Notes the time of a claim. Returns whether the request before it has taken little time. */
static int note_claim(kirin_ring *ring, int has_slept)
{
    struct timespec now;
    uint64_t now_ns;
    clock_gettime(CLOCK_MONOTONIC, &now);
    now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    __atomic_store_n(slot_word(ring, ring->slot, CLAIMED_AT), now_ns, __ATOMIC_RELEASE);
    if (!has_slept) ring->is_fast = now_ns - ring->claimed_at_ns < FAST_NS;
    ring->claimed_at_ns = now_ns;
    return ring->is_fast;
}

enum kirin_ring_turn kirin_ring_take(kirin_ring *ring)
{
    uint32_t *futex = seat_futex(ring, ring->seat);
    uint64_t request;
    int has_slept = 0;

    for (;;) {
        uint32_t value = __atomic_load_n(futex, __ATOMIC_SEQ_CST);
        uint64_t said = command(ring);
        if (said == COMMAND_LEAVE) {
            if (*ring->is_mine) wake_for_waiting(ring);
            return KIRIN_RING_LEAVE;
        }
        if (said == COMMAND_GO && claim(ring)) break;
        has_slept = 1;
        if (said == COMMAND_GO ? sleep_until_woken(ring, futex, value) : wait_for(futex, value))
            continue;
        /* The signal at the end of the parent comes once, and not after a change of the user. */
        return getppid() == ring->parent ? KIRIN_RING_INTERRUPTED : KIRIN_RING_LEAVE;
    }
    /*
     * A fast worker takes the next request sooner than another one would wake up. If it gets slow,
     * the front wakes another one.
     */
    if (!note_claim(ring, has_slept)) wake_for_waiting(ring);
    request = load(slot_word(ring, ring->slot, REQUEST));
    ring->loop = (uint32_t)((request >> 8) % ring->header[LOOPS]);
    ring->state = IN_SLOT;
    if (request & 1) {
        kirin_ring_over_connection(ring);
        return KIRIN_RING_CONNECTION;
    }
    return KIRIN_RING_REQUEST;
}

const char *kirin_ring_request(const kirin_ring *ring, size_t *bytes)
{
    uint64_t length = load(slot_word(ring, ring->slot, REQUEST_LENGTH));
    *bytes = length < ring->header[REQUEST_BYTES] ? length : ring->header[REQUEST_BYTES];
    return room(ring, ring->slot);
}

int kirin_ring_has_request(const kirin_ring *ring)
{
    return ring->state == IN_SLOT && *ring->is_mine;
}

void kirin_ring_begin(kirin_ring *ring)
{
    if (kirin_ring_has_request(ring)) set_phase(ring, PHASE_RUNNING);
}

char *kirin_ring_room(kirin_ring *ring)
{
    return room(ring, ring->slot) + ring->header[REQUEST_BYTES];
}

size_t kirin_ring_room_bytes(const kirin_ring *ring) { return ring->header[ANSWER_BYTES]; }

void kirin_ring_answer(kirin_ring *ring, size_t bytes, int cleans_up)
{
    if (!kirin_ring_has_request(ring)) return;
    __atomic_store_n(slot_word(ring, ring->slot, ANSWER_LENGTH), bytes, __ATOMIC_RELAXED);
    set_phase(ring, cleans_up ? PHASE_CLEANS_UP : PHASE_ANSWERED);
    ring->state = cleans_up ? CLEANS_UP : NO_REQUEST;
    report(ring);
}

void kirin_ring_cleaned_up(kirin_ring *ring)
{
    if (ring->state != CLEANS_UP || !*ring->is_mine) return;
    ring->state = NO_REQUEST;
    set_phase(ring, PHASE_CLEANED_UP);
    report(ring);
}

int kirin_ring_over_connection(kirin_ring *ring)
{
    if (kirin_ring_has_request(ring)) {
        ring->state = ON_CONNECTION;
        /* The next request has to wait until the front has read the answer to this one. */
        swap_if(command_word(ring), COMMAND_GO, COMMAND_WAIT);
        set_phase(ring, PHASE_CONNECTION);
        report(ring);
    }
    return ring->state == ON_CONNECTION && *ring->is_mine;
}
