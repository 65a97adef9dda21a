/*
 * Many workers on one ring that are interrupted, killed and replaced at random.
 *
 *     stress REQUESTS SEED
 *
 * Prints a line and exits with 0 if each request has got exactly one answer, which is its own.
 * A ring that loses a wake-up stops here: nobody sleeps less than an hour (see stress.t).
 */
#define _GNU_SOURCE
#include "front.h"
#include "../kirin_ring.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 12
#define SEATS 5
#define LOOPS 3
#define MAX_FILLER 3000

/* Without an answer for so many seconds the test has failed. */
#define PATIENCE 60

/* What a worker does with a request. */
enum deed { ANSWER, SPIN, SLEEP, CLEAN_UP, CONNECTION, FORK, LEAVE, DIE_UNSEEN, DIE_RUNNING,
    DIE_WRITING, DIE_ANSWERED, DIE_CLEANING, DIE_ON_CONNECTION, DEEDS };

/* A request, and its answer. The filler depends on the number. */
typedef struct {
    uint64_t number;
    uint32_t deed;
    uint32_t length;
    unsigned char filler[MAX_FILLER];
} letter;

#define LETTER_HEAD offsetof(letter, filler)

static void seal(letter *l, uint64_t salt)
{
    uint32_t i;
    for (i = 0; i < l->length; i++) l->filler[i] = (unsigned char)((l->number + salt + i) * 31);
}

static int is_sealed(const letter *l, size_t bytes, uint64_t salt)
{
    uint32_t i;
    if (bytes < LETTER_HEAD || l->length > MAX_FILLER || bytes != LETTER_HEAD + l->length) return 0;
    for (i = 0; i < l->length; i++)
        if (l->filler[i] != (unsigned char)((l->number + salt + i) * 31)) return 0;
    return 1;
}

static void read_all(int fd, void *to, size_t bytes)
{
    char *at = to;
    while (bytes > 0) {
        ssize_t count = read(fd, at, bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) _exit(0);
        at += count;
        bytes -= (size_t)count;
    }
}

static void write_all(int fd, const void *from, size_t bytes)
{
    const char *at = from;
    while (bytes > 0) {
        ssize_t count = send(fd, at, bytes, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) _exit(0);
        at += count;
        bytes -= (size_t)count;
    }
}

/* ------------------------------------------------------------------------ worker */

static void interrupt(int signal) { (void)signal; }

static void die(void) { kill(getpid(), SIGKILL); }

/* A child of the worker must not be able to do anything in the worker's place. */
static void try_as_child(kirin_ring *ring)
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        int is_wrong = kirin_ring_is_mine(ring) || kirin_ring_has_request(ring)
            || kirin_ring_take(ring) != KIRIN_RING_LEAVE || kirin_ring_over_connection(ring);
        kirin_ring_begin(ring);
        kirin_ring_answer(ring, 1, 0);
        kirin_ring_cleaned_up(ring);
        kirin_ring_detach(ring);
        _exit(is_wrong);
    }
    if (child < 0) err(1, "fork");
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) { }
    if (status != 0) errx(1, "a child is told that it is the worker");
}

static void work(kirin_ring *ring, int fd, const letter *request)
{
    letter answer = *request;
    const size_t bytes = LETTER_HEAD + answer.length;
    unsigned i;

    if (request->deed == DIE_UNSEEN) die();
    kirin_ring_begin(ring);
    seal(&answer, 1);
    if (request->deed == SPIN)
        for (i = 0; i < 20000; i++) __asm__ volatile("");
    if (request->deed == SLEEP) usleep((useconds_t)(request->number % 700));
    if (request->deed == FORK) try_as_child(ring);
    if (request->deed == DIE_RUNNING) die();
    if (request->deed == CONNECTION || request->deed == DIE_ON_CONNECTION) {
        if (!kirin_ring_over_connection(ring) || !kirin_ring_over_connection(ring))
            errx(1, "the worker may not use its connection");
        if (request->deed == DIE_ON_CONNECTION) {
            write_all(fd, &answer, LETTER_HEAD / 2);
            die();
        }
        write_all(fd, &answer, bytes);
        return;
    }
    memcpy(kirin_ring_room(ring), &answer, request->deed == DIE_WRITING ? bytes / 2 : bytes);
    if (request->deed == DIE_WRITING) die();
    kirin_ring_answer(ring, bytes, request->deed == CLEAN_UP || request->deed == DIE_CLEANING);
    if (kirin_ring_over_connection(ring)) errx(1, "a second answer");
    if (request->deed == DIE_ANSWERED || request->deed == DIE_CLEANING) die();
    if (request->deed == CLEAN_UP) {
        usleep((useconds_t)(request->number % 300));
        kirin_ring_cleaned_up(ring);
    }
    if (request->deed == LEAVE) _exit(0);
}

static void be_worker(int fd, pid_t parent)
{
    struct sigaction action = { .sa_handler = interrupt };
    const suseconds_t between = 200 + getpid() % 3000;
    const struct itimerval timer = { { 0, between }, { 0, between } };
    kirin_ring *ring;
    letter request;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    do ring = kirin_ring_attach(fd, parent); while (!ring && errno == EINTR);
    if (!ring) errx(1, "not attached");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        const char *bytes;
        size_t length;
        switch (kirin_ring_take(ring)) {
        case KIRIN_RING_INTERRUPTED:
            break;
        case KIRIN_RING_LEAVE:
            kirin_ring_detach(ring);
            _exit(0);
        case KIRIN_RING_CONNECTION:
            read_all(fd, &request, LETTER_HEAD);
            read_all(fd, request.filler, request.length);
            if (!is_sealed(&request, LETTER_HEAD + request.length, 0)) errx(1, "a bad request");
            seal(&request, 1);
            write_all(fd, &request, LETTER_HEAD + request.length);
            break;
        case KIRIN_RING_REQUEST:
            bytes = kirin_ring_request(ring, &length);
            if (length > sizeof request) errx(1, "a long request");
            memcpy(&request, bytes, length);
            if (!is_sealed(&request, length, 0)) errx(1, "a bad request");
            work(ring, fd, &request);
        }
    }
}

/* ------------------------------------------------------------------------ front */

/* How far a slot is. An answer that is taken may have a cleanup behind it. */
typedef enum { FREE, WAITING, TAKEN } slot_state;

typedef struct {
    slot_state state;
    int over_connection;
    letter request;
} slot;

typedef struct {
    pid_t pid;
    int fd;
} worker;

static front ring;
static slot slots[SLOTS];
static worker workers[SEATS];
static unsigned char *answers;
static uint64_t next_number, requests, answered, retried, killed;

static void fail(const char *why)
{
    unsigned i;
    fprintf(stderr, "stress: %s; %llu of %llu answered\n", why, (unsigned long long)answered,
        (unsigned long long)requests);
    for (i = 0; i < SLOTS; i++)
        fprintf(stderr, "slot %u: state %d, number %llu, owner %u, phase %llu\n", i,
            slots[i].state, (unsigned long long)slots[i].request.number, front_owner(&ring, i),
            (unsigned long long)front_word(&ring, i, PHASE));
    for (i = 0; i < SEATS; i++) kill(workers[i].pid, SIGKILL);
    exit(1);
}

static void start_worker(unsigned seat)
{
    int pair[2];
    pid_t parent = getpid();
    unsigned i;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) err(1, "socketpair");
    front_clear_seat(&ring, seat);
    workers[seat].pid = fork();
    if (workers[seat].pid < 0) err(1, "fork");
    if (workers[seat].pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        close(pair[0]);
        for (i = 0; i < SEATS; i++) if (i != seat && workers[i].fd > 0) close(workers[i].fd);
        be_worker(pair[1], parent);
    }
    close(pair[1]);
    workers[seat].fd = pair[0];
    if (!front_offer(&ring, pair[0], seat)) fail("a worker refuses its seat");
    front_let_go(&ring, seat);
}

static void put(unsigned number)
{
    slot *s = &slots[number];
    s->state = WAITING;
    s->over_connection = s->request.number % 13 == 0;
    front_put(&ring, number, (unsigned)rand() % LOOPS, s->over_connection ? NULL : &s->request,
        LETTER_HEAD + s->request.length);
}

static void put_new(unsigned number)
{
    letter *l = &slots[number].request;
    l->number = next_number++;
    /* Most are plain. */
    l->deed = rand() % 4 ? ANSWER : (unsigned)rand() % DEEDS;
    l->length = (unsigned)rand() % MAX_FILLER;
    seal(l, 0);
    put(number);
}

/* Puts a request into the queue again, which must not end its worker a second time. */
static void retry(unsigned number)
{
    slots[number].request.deed = ANSWER;
    retried++;
    put(number);
}

static void take_answer(unsigned number, const letter *answer, size_t bytes)
{
    slot *s = &slots[number];
    if (!is_sealed(answer, bytes, 1)) fail("a bad answer");
    if (answer->number != s->request.number) fail("the answer to another request");
    if (answers[answer->number]++) fail("a second answer");
    s->state = TAKEN;
    answered++;
}

/* Sends the request if the worker waits for it, and reads the answer. Returns 0 if it is lost. */
static int answer_over_connection(unsigned number, unsigned seat)
{
    slot *s = &slots[number];
    letter answer;
    size_t bytes = LETTER_HEAD + s->request.length, have = 0;
    int fd = workers[seat].fd;
    if (s->over_connection && send(fd, &s->request, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) return 0;
    while (have < bytes) {
        ssize_t count = recv(fd, (char *)&answer + have, bytes - have, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return 0;
        have += (size_t)count;
    }
    take_answer(number, &answer, bytes);
    front_let_go(&ring, seat);
    return 1;
}

/* Looks at a slot that was reported, or whose worker has ended. */
static void look(unsigned number, int has_ended)
{
    slot *s = &slots[number];
    unsigned owner = front_owner(&ring, number);
    uint64_t phase = front_word(&ring, number, PHASE);
    letter answer;
    size_t bytes;

    if (s->state == FREE || owner == NOBODY || owner == WITHDRAWN) return;
    if (s->state == TAKEN) {
        if (phase != ANSWERED_CLEANS_UP || has_ended) s->state = FREE;
        return;
    }
    switch (phase) {
    case QUEUED:
    case RUNNING:
        /* A report that came late. */
        if (has_ended) retry(number);
        return;
    case OVER_CONNECTION:
        if (has_ended) retry(number);
        /* If the worker has been killed, the rest follows when it is reaped. */
        else if (answer_over_connection(number, owner - 1)) s->state = FREE;
        return;
    default:
        bytes = front_word(&ring, number, ANSWER_LENGTH);
        if (bytes > sizeof answer) fail("a long answer");
        memcpy(&answer, front_answer(&ring, number), bytes);
        take_answer(number, &answer, bytes);
        if (phase != ANSWERED_CLEANS_UP || has_ended) s->state = FREE;
    }
}

static void reap(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        unsigned seat, i;
        for (seat = 0; seat < SEATS && workers[seat].pid != pid; seat++) { }
        if (seat == SEATS) continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0) fail("a worker has failed");
        killed += WIFSIGNALED(status);
        close(workers[seat].fd);
        for (i = 0; i < SLOTS; i++)
            if (front_owner(&ring, i) == seat + 1) look(i, 1);
        start_worker(seat);
        /* It may have been woken for a request that it has not claimed. */
        front_wake_for_waiting(&ring);
    }
}

int main(int count, char **arguments)
{
    sigset_t children;
    struct signalfd_siginfo ignored;
    time_t last;
    uint64_t before = 0;
    unsigned i;
    int signals;

    if (count != 3) errx(2, "usage: stress REQUESTS SEED");
    requests = strtoull(arguments[1], NULL, 10);
    srand((unsigned)strtoul(arguments[2], NULL, 10));
    answers = calloc(requests + SLOTS, 1);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    signals = signalfd(-1, &children, SFD_NONBLOCK | SFD_CLOEXEC);
    front_create(&ring, SLOTS, SEATS, LOOPS, 4096, 4096);
    for (i = 0; i < SEATS; i++) start_worker(i);
    last = time(NULL);
    while (answered < requests) {
        int number;
        /* How full the ring is changes all the time, so that workers sleep now and then. */
        unsigned most = (unsigned)rand() % (SLOTS + 1);
        for (i = 0; i < most && next_number < requests; i++)
            if (slots[i].state == FREE) put_new(i);
        if (rand() % 50 == 0) {
            i = (unsigned)rand() % SLOTS;
            if (slots[i].state == WAITING && front_withdraw(&ring, i)) retry(i);
        }
        if (rand() % 200 == 0) kill(workers[(unsigned)rand() % SEATS].pid, SIGKILL);
        if (rand() % 200 == 0) front_dismiss(&ring, (unsigned)rand() % SEATS);
        number = front_finished(&ring, 1000, signals);
        if (number >= 0) look((unsigned)number, 0);
        if (read(signals, &ignored, sizeof ignored) > 0 || number < 0) reap();
        if (answered != before) {
            before = answered;
            last = time(NULL);
        }
        else if (time(NULL) - last > PATIENCE) fail("nothing happens any more");
    }
    for (i = 0; i < SEATS; i++) kill(workers[i].pid, SIGKILL);
    for (i = 0; i < requests; i++) if (answers[i] != 1) fail("a request without an answer");
    printf("%llu requests, %llu of them again, %llu workers killed\n",
        (unsigned long long)requests, (unsigned long long)retried, (unsigned long long)killed);
    return 0;
}
