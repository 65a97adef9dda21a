/*
 * An application for tests, with its parent and its workers: the worker protocol in C. It answers
 * with what the path says, and writes each request that it has seen to the file that is its last
 * argument.
 *
 *     /NUMBER              the number, through the ring
 *     /NUMBER/connection   the number, over the connection
 *     /NUMBER/long         the number and then 100,000 bytes, over the connection
 *     /NUMBER/cleanup      the number, and a cleanup afterwards
 */
#include "kirin_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORKERS 64
#define LONG_BODY 100000

static int listener, seen;
static const char *generation = "1";
static volatile sig_atomic_t stopping, resize;

static void stop(int number) { stopping = number; }

/* Returns the value of a variable in a request block. */
static const char *variable(const char *block, size_t bytes, const char *name)
{
    const char *at = memchr(block, ':', bytes), *end = block + bytes;
    if (!at) return "";
    for (at++; at < end; ) {
        const char *value = at + strlen(at) + 1;
        if (value >= end) break;
        if (strcmp(at, name) == 0) return value;
        at = value + strlen(value) + 1;
    }
    return "";
}

static int send_all(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return 0;
        bytes += sent;
        count -= sent;
    }
    return 1;
}

/* Writes the answer to a request. Returns its length. */
static size_t make_answer(char *to, const char *block, size_t bytes)
{
    static char line[256];
    const char *path = variable(block, bytes, "PATH_INFO");
    size_t number = path[0] == '/' ? strspn(path + 1, "0123456789") : 0;
    size_t filler = strstr(path, "/long") ? LONG_BODY : 0;
    const char *cleanup = strstr(path, "/cleanup") ? "Kirin-Cleanup: 1\r\n" : "";
    size_t head;
    int written = snprintf(line, sizeof line, "%s %.*s\n",
        variable(block, bytes, "REQUEST_METHOD"), (int)number, path + 1);
    if (write(seen, line, written) != written) _exit(1);
    head = sprintf(to, "HTTP/1.1 200\r\nContent-Type: text/plain\r\n%sContent-Length: %zu\r\n\r\n%.*s",
        cleanup, number + filler, (int)number, path + 1);
    memset(to + head, 'x', filler);
    return head + filler;
}

/* Reads a request without a body from the connection. Returns its length, or 0 at the end. */
static size_t read_request(int fd, char *block, size_t room)
{
    size_t have = 0;
    for (;;) {
        ssize_t count = read(fd, block + have, room - 1 - have);
        char *colon;
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return 0;
        have += count;
        block[have] = '\0';
        colon = memchr(block, ':', have);
        if (colon && have >= (size_t)(colon - block) + 2 + strtoul(block, NULL, 10)
            + strtoul(variable(block, have, "CONTENT_LENGTH"), NULL, 10))
            return have;
    }
}

/* Serves the requests of a connection. Returns whether the worker accepts another one. */
static int serve(int fd, pid_t parent)
{
    static char block[1 << 17], answer[1 << 17];
    kirin_ring *ring = kirin_ring_attach(fd, parent);
    const char *request;
    int goes_on = 0, is_for_connection;
    size_t bytes;
    while (!stopping) {
        enum kirin_ring_turn turn = ring ? kirin_ring_take(ring) : KIRIN_RING_CONNECTION;
        if (turn == KIRIN_RING_INTERRUPTED) continue;
        if (turn == KIRIN_RING_LEAVE) break;
        if (turn == KIRIN_RING_CONNECTION) {
            bytes = read_request(fd, block, sizeof block);
            if (bytes == 0) break;
            goes_on = !send_all(fd, answer, make_answer(answer, block, bytes));
            if (goes_on) break;
            continue;
        }
        request = kirin_ring_request(ring, &bytes);
        if (bytes >= sizeof block) _exit(1);
        memcpy(block, request, bytes);
        block[bytes] = '\0';
        is_for_connection = strstr(variable(block, bytes, "PATH_INFO"), "/connection") != NULL;
        kirin_ring_begin(ring);
        bytes = make_answer(answer, block, bytes);
        if (bytes <= kirin_ring_room_bytes(ring) && !is_for_connection) {
            int cleans_up = strstr(answer, "Kirin-Cleanup") != NULL;
            memcpy(kirin_ring_room(ring), answer, bytes);
            kirin_ring_answer(ring, bytes, cleans_up);
            if (cleans_up) kirin_ring_cleaned_up(ring);
            continue;
        }
        kirin_ring_over_connection(ring);
        goes_on = !send_all(fd, answer, bytes);
        if (goes_on) break;
    }
    if (ring) kirin_ring_detach(ring);
    close(fd);
    return goes_on && !stopping;
}

static void be_worker(void)
{
    struct pollfd wait = { listener, POLLIN, 0 };
    pid_t parent = getppid();
    while (!stopping && getppid() == parent) {
        char greeting[128];
        int fd;
        if (poll(&wait, 1, 1000) < 1) continue;
        fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        snprintf(greeting, sizeof greeting, "KIRIN/1 pid=%d generation=%s adapter=c/1 speaks=2\n",
            (int)getpid(), generation);
        if (send_all(fd, greeting, strlen(greeting)) && !serve(fd, parent)) break;
    }
    _exit(0);
}

static void say(const char *word, long first, long second)
{
    char line[64];
    int bytes = snprintf(line, sizeof line, second < 0 ? "%s %ld\n" : "%s %ld %ld\n", word, first,
        second);
    if (write(STDOUT_FILENO, line, bytes) != bytes) stopping = SIGTERM;
}

int main(int count, char **arguments)
{
    struct sigaction action;
    pid_t workers[MAX_WORKERS] = { 0 };
    int wanted = 1, i, status;
    pid_t front = getppid();

    for (i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--workers") == 0) wanted = atoi(arguments[i + 1]);
        if (strcmp(arguments[i], "--generation") == 0) generation = arguments[i + 1];
    }
    listener = dup(STDIN_FILENO);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    seen = open(arguments[count - 1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    memset(&action, 0, sizeof action);
    action.sa_handler = stop;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGQUIT, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
    while (!stopping && getppid() == front) {
        pid_t ended;
        for (i = 0; i < wanted && i < MAX_WORKERS; i++) {
            if (workers[i]) continue;
            workers[i] = fork();
            if (workers[i] == 0) {
                close(STDOUT_FILENO);
                be_worker();
            }
            say("started", workers[i], -1);
        }
        ended = waitpid(-1, &status, 0);
        for (i = 0; ended > 0 && i < MAX_WORKERS; i++)
            if (workers[i] == ended) workers[i] = 0;
        if (ended > 0) say("exited", ended, status);
    }
    for (i = 0; i < MAX_WORKERS; i++)
        if (workers[i]) kill(workers[i], stopping == SIGINT ? SIGKILL : SIGTERM);
    while (waitpid(-1, &status, 0) > 0 || errno == EINTR) { }
    return 0;
}
