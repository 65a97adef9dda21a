#define _GNU_SOURCE
#include "front.h"

#include <err.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAGIC, LAYOUT, TOTAL, CELLS, SLOTS, SEATS, LOOPS, REQUEST_BYTES, ANSWER_BYTES, QUEUE,
    SEAT_WORDS, SLEEPERS, LOOP_WORDS, FINISHED, FINISHED_STRIDE, SLOT_WORDS, ROOMS };

enum { COMMAND_WAIT, COMMAND_LEAVE, COMMAND_GO };

#define HEAD_OFFSET 256
#define WAKING_OFFSET 320
#define LINE 64

static uint64_t *at(const front *f, uint64_t offset)
{
    return (uint64_t *)(void *)(f->memory + offset);
}

static uint64_t load(uint64_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

static void store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static int swap_if(uint64_t *word, uint64_t old, uint64_t new)
{
    return __atomic_compare_exchange_n(word, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static uint64_t *slot_word(const front *f, unsigned slot, int word)
{
    return at(f, f->header[SLOT_WORDS] + (uint64_t)slot * LINE + 8u * (unsigned)word);
}

static uint64_t line_up(uint64_t offset) { return (offset + LINE - 1) / LINE * LINE; }

static uint64_t words(uint64_t bits) { return (bits + 63) / 64; }

void front_create(front *f, unsigned slots, unsigned seats, unsigned loops, size_t request_bytes,
    size_t answer_bytes)
{
    uint64_t *h = f->header, cells = 2;
    unsigned i;
    while (cells < 2 * (uint64_t)slots) cells *= 2;
    memset(f, 0, sizeof *f);
    memcpy(&h[MAGIC], "KIRINRNG", 8);
    h[LAYOUT] = 1;
    h[CELLS] = cells;
    h[SLOTS] = slots;
    h[SEATS] = seats;
    h[LOOPS] = loops;
    h[REQUEST_BYTES] = request_bytes;
    h[ANSWER_BYTES] = answer_bytes;
    h[QUEUE] = 512;
    h[SEAT_WORDS] = line_up(h[QUEUE] + 8 * cells);
    h[SLEEPERS] = h[SEAT_WORDS] + LINE * seats;
    h[LOOP_WORDS] = line_up(h[SLEEPERS] + 8 * words(seats));
    h[FINISHED] = h[LOOP_WORDS] + LINE * loops;
    h[FINISHED_STRIDE] = line_up(8 * words(slots));
    h[SLOT_WORDS] = h[FINISHED] + h[FINISHED_STRIDE] * loops;
    h[ROOMS] = h[SLOT_WORDS] + LINE * slots;
    h[TOTAL] = h[ROOMS] + slots * (request_bytes + answer_bytes);
    if (h[TOTAL] < 4096) h[TOTAL] = 4096;
    f->file = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (f->file < 0 || ftruncate(f->file, (off_t)h[TOTAL]) != 0
        || fcntl(f->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        err(1, "memory file");
    f->memory = mmap(NULL, h[TOTAL], PROT_READ | PROT_WRITE, MAP_SHARED, f->file, 0);
    if (f->memory == MAP_FAILED) err(1, "mmap");
    memcpy(f->memory, h, HEADER_WORDS * 8);
    f->next = 1;
    store(at(f, HEAD_OFFSET), 1);
    f->positions = calloc(slots, sizeof *f->positions);
    f->eventfds = calloc(loops, sizeof *f->eventfds);
    if (!f->positions || !f->eventfds) err(1, "memory");
    for (i = 0; i < loops; i++) {
        f->eventfds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (f->eventfds[i] < 0) err(1, "eventfd");
    }
}

void front_send(int fd, const char *line, const int *descriptors, unsigned count)
{
    union {
        char bytes[CMSG_SPACE(64 * sizeof(int))];
        struct cmsghdr alignment;
    } control;
    struct iovec part = { (char *)line, strlen(line) };
    struct msghdr message;
    memset(&message, 0, sizeof message);
    memset(&control, 0, sizeof control);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (count > 64) errx(1, "too many descriptors");
    if (count > 0) {
        struct cmsghdr *header;
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
    }
    if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0) warn("sendmsg");
}

int front_read_line(int fd, char *line, size_t size)
{
    size_t length = 0;
    while (length + 1 < size && read(fd, line + length, 1) == 1) {
        if (line[length] == '\n') {
            line[length] = '\0';
            return 1;
        }
        length++;
    }
    return 0;
}

int front_offer(front *f, int fd, unsigned seat)
{
    char line[64];
    int descriptors[64] = { f->file };
    unsigned loops = (unsigned)f->header[LOOPS];
    memcpy(descriptors + 1, f->eventfds, loops * sizeof(int));
    snprintf(line, sizeof line, "KIRIN/2 seat=%u\n", seat);
    front_send(fd, line, descriptors, 1 + loops);
    return front_read_line(fd, line, sizeof line) && strcmp(line, "ring") == 0;
}

/* Returns the position of the first request that nobody has claimed, or 0. */
static uint64_t first_in_queue(front *f)
{
    uint64_t *head = at(f, HEAD_OFFSET);
    for (;;) {
        uint64_t position = load(head);
        uint64_t cell = load(at(f, f->header[QUEUE] + 8 * (position % f->header[CELLS])));
        if (cell >> 16 != position) {
            if (load(head) == position) return 0;
            continue;
        }
        if (load(slot_word(f, cell & 0xFFFF, CLAIM)) == position << 16) return position;
        swap_if(head, position, position + 1);
    }
}

static void wake_sleeper(front *f)
{
    uint64_t i, sleepers;
    /* The one that is woken sets this back, so it comes first. */
    store(at(f, WAKING_OFFSET), 1);
    for (i = 0; i < words(f->header[SEATS]); i++) {
        uint64_t *word = at(f, f->header[SLEEPERS] + 8 * i);
        while ((sleepers = load(word)) != 0) {
            uint64_t bit = sleepers & -sleepers;
            uint64_t seat = 64 * i + (uint64_t)__builtin_ctzll(bit);
            uint32_t *futex = (uint32_t *)at(f, f->header[SEAT_WORDS] + seat * LINE);
            if (!(__atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST) & bit)) continue;
            __atomic_fetch_add(futex, 1, __ATOMIC_SEQ_CST);
            syscall(SYS_futex, futex, FUTEX_WAKE, 1, NULL, NULL, 0);
            return;
        }
    }
    store(at(f, WAKING_OFFSET), 0);
}

void front_wake_for_waiting(front *f)
{
    store(at(f, WAKING_OFFSET), 0);
    if (first_in_queue(f)) wake_sleeper(f);
}

void front_put(front *f, unsigned slot, unsigned loop, const void *request, size_t length)
{
    uint64_t position = f->next++, bytes = f->header[REQUEST_BYTES] + f->header[ANSWER_BYTES];
    f->positions[slot] = position;
    if (request) memcpy(f->memory + f->header[ROOMS] + slot * bytes, request, length);
    store(slot_word(f, slot, REQUEST_LENGTH), length);
    store(slot_word(f, slot, REQUEST), (uint64_t)loop << 8 | !request);
    store(slot_word(f, slot, PHASE), QUEUED);
    store(slot_word(f, slot, CLAIMED_AT), 0);
    store(slot_word(f, slot, ANSWER_LENGTH), 0);
    store(slot_word(f, slot, CLAIM), position << 16);
    store(at(f, f->header[QUEUE] + 8 * (position % f->header[CELLS])), position << 16 | slot);
    /* A worker that claims an earlier request wakes another one for this one. */
    if (first_in_queue(f) == position) wake_sleeper(f);
}

int front_withdraw(front *f, unsigned slot)
{
    uint64_t position = f->positions[slot] << 16;
    return swap_if(slot_word(f, slot, CLAIM), position, position | WITHDRAWN);
}

unsigned front_owner(const front *f, unsigned slot)
{
    return front_word(f, slot, CLAIM) & 0xFFFF;
}

uint64_t front_word(const front *f, unsigned slot, int word)
{
    return load(slot_word(f, slot, word));
}

const char *front_answer(const front *f, unsigned slot)
{
    uint64_t bytes = f->header[REQUEST_BYTES] + f->header[ANSWER_BYTES];
    return f->memory + f->header[ROOMS] + slot * bytes + f->header[REQUEST_BYTES];
}

/* Takes a slot that was reported to any loop. */
static int take_finished(front *f)
{
    uint64_t loop, i;
    for (loop = 0; loop < f->header[LOOPS]; loop++) {
        for (i = 0; i < words(f->header[SLOTS]); i++) {
            uint64_t offset = f->header[FINISHED] + loop * f->header[FINISHED_STRIDE] + 8 * i;
            uint64_t bits = load(at(f, offset)), bit = bits & -bits;
            if (!bits) continue;
            __atomic_fetch_and(at(f, offset), ~bit, __ATOMIC_SEQ_CST);
            return (int)(64 * i) + __builtin_ctzll(bit);
        }
    }
    return -1;
}

int front_finished(front *f, int milliseconds, int extra)
{
    const uint64_t loops = f->header[LOOPS];
    struct pollfd wanted[65];
    uint64_t i, count;
    int slot = take_finished(f);
    if (slot >= 0 || milliseconds == 0) return slot;
    for (i = 0; i < loops; i++) {
        wanted[i] = (struct pollfd){ f->eventfds[i], POLLIN, 0 };
        store(at(f, f->header[LOOP_WORDS] + i * LINE), 1);
    }
    wanted[loops] = (struct pollfd){ extra, POLLIN, 0 };
    slot = take_finished(f);
    /* A worker that was fast wakes no other one, and may have a slow request now. */
    if (slot < 0 && first_in_queue(f) && poll(wanted, loops + 1, 1) == 0) front_wake_for_waiting(f);
    if (slot < 0) {
        poll(wanted, loops + 1, milliseconds);
        slot = take_finished(f);
    }
    for (i = 0; i < loops; i++) {
        store(at(f, f->header[LOOP_WORDS] + i * LINE), 0);
        if (read(f->eventfds[i], &count, sizeof count) < 0) { }
    }
    return slot;
}

static void command(front *f, unsigned seat, uint64_t word)
{
    uint64_t offset = f->header[SEAT_WORDS] + (uint64_t)seat * LINE;
    store(at(f, offset + 8), word);
    __atomic_fetch_add((uint32_t *)at(f, offset), 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, at(f, offset), FUTEX_WAKE, 1, NULL, NULL, 0);
}

void front_let_go(front *f, unsigned seat) { command(f, seat, COMMAND_GO); }

void front_dismiss(front *f, unsigned seat) { command(f, seat, COMMAND_LEAVE); }

void front_clear_seat(front *f, unsigned seat)
{
    uint64_t *sleepers = at(f, f->header[SLEEPERS] + 8 * (seat / 64));
    command(f, seat, COMMAND_WAIT);
    __atomic_fetch_and(sleepers, ~(1ull << (seat % 64)), __ATOMIC_SEQ_CST);
}
