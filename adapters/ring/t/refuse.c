/*
 * Offers that a worker must refuse: no descriptors, wrong lines, files that are too short or that
 * can change their size, and headers with numbers that do not fit. Each byte that the worker could
 * touch must lie within the file. No descriptor may stay open.
 */
#define _GNU_SOURCE
#include "front.h"
#include "../kirin_ring.h"

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int failures;

static int open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

/* Offers something, and checks what the worker says to it. */
static void offer(const char *what, const char *line, const int *descriptors, unsigned count,
    int is_good)
{
    char answer[64] = "";
    const int before = open_descriptors();
    kirin_ring *ring;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) err(1, "socketpair");
    front_send(pair[0], line, descriptors, count);
    ring = kirin_ring_attach(pair[1], getppid());
    front_read_line(pair[0], answer, sizeof answer);
    if (!!ring != is_good || strcmp(answer, is_good ? "ring" : "socket") != 0) {
        fprintf(stderr, "%s: the worker says %s\n", what, answer);
        failures++;
    }
    if (ring) kirin_ring_detach(ring);
    close(pair[0]);
    close(pair[1]);
    if (open_descriptors() != before) {
        fprintf(stderr, "%s: descriptors stay open\n", what);
        failures++;
    }
}

/* Offers a ring one of whose header's words is another number. */
static void change(front *f, int word, uint64_t value, int is_good)
{
    char what[64];
    uint64_t *at = (uint64_t *)(void *)f->memory + word, old = *at;
    const int descriptors[] = { f->file, f->eventfds[0], f->eventfds[1] };
    snprintf(what, sizeof what, "word %d is %llu", word, (unsigned long long)value);
    *at = value;
    offer(what, "KIRIN/2 seat=1\n", descriptors, 3, is_good);
    *at = old;
}

int main(void)
{
    /* Values that hardly any word can have. */
    static const uint64_t wrong[] = { 0, 3, 7, 1ull << 32, 1ull << 63, ~0ull, ~0ull - 63,
        (1ull << 61) + 8, 1ull << 48 };
    const uint64_t sizes[] = { 64, 4096 };
    unsigned i, j, words;
    front f;
    int all[3], pipes[2], small, loose;

    front_create(&f, 4, 2, 2, sizes[0], sizes[1]);
    all[0] = f.file;
    all[1] = f.eventfds[0];
    all[2] = f.eventfds[1];
    offer("a good offer", "KIRIN/2 seat=1\n", all, 3, 1);
    offer("a seat that is not there", "KIRIN/2 seat=2\n", all, 3, 0);
    offer("a seat below zero", "KIRIN/2 seat=-1\n", all, 3, 0);
    offer("a seat of many digits", "KIRIN/2 seat=4294967296\n", all, 3, 0);
    offer("no seat", "KIRIN/2 seat=\n", all, 3, 0);
    offer("no line end", "KIRIN/2 seat=1", all, 3, 0);
    offer("another version", "KIRIN/3 seat=1\n", all, 3, 0);
    offer("more words", "KIRIN/2 seat=1 more=2\n", all, 3, 0);
    offer("another line", "Kirin\n", all, 3, 0);
    offer("no descriptors", "KIRIN/2 seat=1\n", all, 0, 0);
    offer("no eventfd", "KIRIN/2 seat=1\n", all, 1, 0);
    offer("too few eventfds", "KIRIN/2 seat=1\n", all, 2, 0);
    if (pipe(pipes) != 0) err(1, "pipe");
    offer("a pipe", "KIRIN/2 seat=1\n", (const int[]){ pipes[0], all[1], all[2] }, 3, 0);
    small = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (ftruncate(small, 64) != 0 || fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        err(1, "memory file");
    offer("a small file", "KIRIN/2 seat=1\n", (const int[]){ small, all[1], all[2] }, 3, 0);
    loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (write(loose, f.memory, f.header[2]) != (ssize_t)f.header[2]) err(1, "memory file");
    offer("a file that can shrink", "KIRIN/2 seat=1\n", (const int[]){ loose, all[1], all[2] }, 3, 0);

    words = sizeof f.header / sizeof f.header[0];
    for (i = 0; i < words; i++) {
        for (j = 0; j < sizeof wrong / sizeof wrong[0]; j++) {
            /* Parts that overlap, and a few slots or seats, do no harm: they are in the file. */
            const int is_harmless = i >= 9 || i == 4 || i == 5;
            if (is_harmless && wrong[j] > 0 && wrong[j] < f.header[2]) continue;
            if (i >= 9 && wrong[j] == 0) continue;
            change(&f, (int)i, wrong[j], 0);
        }
    }
    /* The parts end where the file ends. */
    for (i = 9; i < words; i++) {
        if (i == 14) continue;
        change(&f, (int)i, f.header[2], 0);
        change(&f, (int)i, f.header[2] - 8, i == 11);
        change(&f, (int)i, f.header[i] + 4, 0);
    }
    change(&f, 16, f.header[16] + 8, 0);
    change(&f, 3, 2 * f.header[2], 0);
    change(&f, 4, 5, 0);
    change(&f, 5, 65534, 0);
    change(&f, 7, sizes[0] + 64, 0);
    change(&f, 8, sizes[1] + 64, 0);
    printf("%d failures\n", failures);
    return failures != 0;
}
