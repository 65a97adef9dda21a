/*
 * Requests that come in quick succession, and that are answered only when each of them has a worker
 * of its own. So several sleeping workers must be woken for each batch. Half of the workers are
 * interrupted by signals, and then take no request until the batch is over.
 *
 *     wakeups BATCHES SEED
 *
 * Prints a line and exits with 0. A ring that loses a wake-up stops here, since nobody sleeps less
 * than an hour (see ring.t).
 */
#define _GNU_SOURCE
#include "front.h"
#include "../kirin_ring.h"

#include <err.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 8

/* The requests of a batch, one for each worker that nothing interrupts. */
#define BATCH (WORKERS / 2)

/* Without an answer for so many seconds the test has failed. */
#define PATIENCE 60

static front ring;
static pid_t workers[WORKERS];

/* How many requests have been taken, by all workers together. */
static uint64_t *taken;

static void interrupt(int signal) { (void)signal; }

/* Interrupts this process now and then. */
static void set_timer(void)
{
    const struct sigaction action = { .sa_handler = interrupt };
    const suseconds_t between = 300 + getpid() % 500;
    const struct itimerval timer = { { 0, between }, { 0, between } };
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void wait_until_taken(uint64_t requests)
{
    while (__atomic_load_n(taken, __ATOMIC_SEQ_CST) < requests) sched_yield();
}

static void be_worker(int fd, pid_t parent, int is_interrupted)
{
    kirin_ring *mine = kirin_ring_attach(fd, parent);
    uint64_t batch, now, i;
    size_t length;
    if (!mine) errx(1, "not attached");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (is_interrupted) set_timer();
    for (;;) {
        switch (kirin_ring_take(mine)) {
        case KIRIN_RING_INTERRUPTED:
            now = __atomic_load_n(taken, __ATOMIC_SEQ_CST);
            wait_until_taken((now + BATCH - 1) / BATCH * BATCH);
            break;
        case KIRIN_RING_REQUEST:
            batch = *(const uint64_t *)(const void *)kirin_ring_request(mine, &length);
            kirin_ring_begin(mine);
            __atomic_fetch_add(taken, 1, __ATOMIC_SEQ_CST);
            wait_until_taken((batch + 1) * BATCH);
            /* Some sleep again before the others have answered. */
            for (i = 0; i < (batch * 7919 + (uint64_t)getpid()) % 3000; i++) __asm__ volatile("");
            kirin_ring_answer(mine, 0, 0);
            break;
        default:
            errx(1, "something else than a request");
        }
    }
}

static void start_worker(unsigned seat)
{
    const pid_t parent = getpid();
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) err(1, "socketpair");
    front_clear_seat(&ring, seat);
    workers[seat] = fork();
    if (workers[seat] == 0) be_worker(pair[1], parent, seat % 2 == 0);
    if (workers[seat] < 0 || !front_offer(&ring, pair[0], seat)) err(1, "a worker");
    front_let_go(&ring, seat);
}

static void pause_a_little(void)
{
    int pause = rand() % 2000;
    while (pause-- > 0) __asm__ volatile("");
}

/* Takes the answers of a batch. Returns how many have come. */
static unsigned take_answers(void)
{
    const time_t begin = time(NULL);
    unsigned answered = 0;
    while (answered < BATCH && time(NULL) - begin < PATIENCE) {
        /* Now and then the front is as fast as a worker that falls asleep. */
        int slot = front_finished(&ring, rand() % 2 ? 0 : 1000, -1);
        if (slot >= 0) answered += front_word(&ring, (unsigned)slot, PHASE) == ANSWERED;
    }
    return answered;
}

int main(int count, char **arguments)
{
    uint64_t batch, batches;
    unsigned i, answered = BATCH;
    if (count != 3) errx(2, "usage: wakeups BATCHES SEED");
    batches = strtoull(arguments[1], NULL, 10);
    srand((unsigned)strtoul(arguments[2], NULL, 10));
    taken = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (taken == MAP_FAILED) err(1, "mmap");
    front_create(&ring, BATCH, WORKERS, 1, 4096, 4096);
    for (i = 0; i < WORKERS; i++) start_worker(i);
    for (batch = 0; batch < batches && answered == BATCH; batch++) {
        for (i = 0; i < BATCH; i++) {
            front_put(&ring, i, 0, &batch, sizeof batch);
            pause_a_little();
        }
        answered = take_answers();
    }
    for (i = 0; i < WORKERS; i++) kill(workers[i], SIGKILL);
    printf("%llu batches, %llu requests taken, %u of the last batch answered\n",
        (unsigned long long)batch, (unsigned long long)*taken, answered);
    return answered != BATCH;
}
