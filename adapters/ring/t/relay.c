/*
 * Stands between a test that speaks version 1 of the worker protocol and a worker that uses the
 * ring. The test sees the bytes that it would see without the ring.
 *
 *     relay SOCKET            STDIN is the test's connection, and SOCKET the path of the workers'
 *
 * A worker that does not offer to use the ring, or refuses it, ends the relay with an error.
 */
#define _GNU_SOURCE
#include "front.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENT STDIN_FILENO
#define REQUEST_BYTES (16 * 1024)
#define ANSWER_BYTES (48 * 1024)
#define MAX_REQUEST (4 * 1024 * 1024)

/* What the relay waits for. A request that is no request is sent to the worker unchanged. */
static enum { FOR_REQUEST, FOR_ANSWER, FOR_CLEANUP, FOR_CONNECTION, FOR_EITHER_SIDE } waiting;

static front ring;
static int worker;

/* The bytes of the client that are not a complete request yet. */
static char request[MAX_REQUEST + 1];
static size_t received;

/* The present request: its length, whether it is in the slot, and whether the worker leaves. */
static size_t length;
static int is_in_slot, is_upgrade, leaves;

static void send_all(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return;
        bytes += sent;
        count -= (size_t)sent;
    }
}

/* Looks whether a complete request has come, or something else. Sets its length. */
static enum { INCOMPLETE, COMPLETE, NO_REQUEST } measure(void)
{
    const char *head;
    char *end;
    const size_t head_length = strtoul(request, &end, 10);
    length = received;
    if (received == 0) return INCOMPLETE;
    /* A worker must refuse these. */
    if (request[0] < '1' || request[0] > '9' || head_length > MAX_REQUEST / 2) return NO_REQUEST;
    if (end == request + received) return INCOMPLETE;
    if (*end != ':') return NO_REQUEST;
    head = end + 1;
    if (head + head_length + 1 > request + received) return INCOMPLETE;
    if (strcmp(head, "CONTENT_LENGTH") != 0) return NO_REQUEST;
    length = (size_t)(head - request) + head_length + 1;
    length += strtoul(head + strlen(head) + 1, NULL, 10);
    return length > received ? INCOMPLETE : COMPLETE;
}

static void put_request(int is_complete)
{
    is_upgrade = memmem(request, length, "HTTP_UPGRADE", sizeof "HTTP_UPGRADE") != NULL;
    is_in_slot = is_complete && !is_upgrade && length <= REQUEST_BYTES;
    leaves = 0;
    /* The last answer is complete, since the client sends another request. */
    front_let_go(&ring, 0);
    front_put(&ring, 0, 0, is_in_slot ? request : NULL, length);
    waiting = FOR_ANSWER;
}

static void take_request(void)
{
    switch (measure()) {
    case INCOMPLETE:
        break;
    case COMPLETE:
        put_request(1);
        break;
    case NO_REQUEST:
        put_request(0);
    }
}

static void forget_request(void)
{
    received -= length;
    memmove(request, request + length, received);
    request[received] = '\0';
    length = 0;
}

static void send_answer(void)
{
    static const char close[] = "\r\nConnection: close\r\n";
    const char *answer = front_answer(&ring, 0);
    uint64_t bytes = front_word(&ring, 0, ANSWER_LENGTH);
    if (bytes > ANSWER_BYTES) errx(1, "an answer of %llu bytes", (unsigned long long)bytes);
    leaves = memmem(answer, bytes, close, sizeof close - 1) != NULL;
    send_all(CLIENT, answer, bytes);
    forget_request();
}

static void look_at_slot(void)
{
    uint64_t phase = front_word(&ring, 0, PHASE);
    if (waiting == FOR_ANSWER && phase == OVER_CONNECTION) {
        if (!is_in_slot) send_all(worker, request, length);
        forget_request();
        waiting = is_upgrade ? FOR_EITHER_SIDE : FOR_CONNECTION;
        return;
    }
    if (waiting == FOR_ANSWER && phase != QUEUED && phase != RUNNING) {
        send_answer();
        waiting = phase == ANSWERED ? FOR_REQUEST : FOR_CLEANUP;
    }
    /* Both reports may have come at once. */
    if (waiting == FOR_CLEANUP && phase == CLEANED_UP) {
        if (!leaves) send_all(CLIENT, "\n", 1);
        waiting = FOR_REQUEST;
    }
    if (waiting == FOR_REQUEST) take_request();
}

/* Passes bytes on. Returns 0 at their end. */
static int pass(int from, int to)
{
    char bytes[65536];
    ssize_t count = recv(from, bytes, sizeof bytes, 0);
    static const char switching[] = "HTTP/1.1 101";
    if (count < 0 && errno == EINTR) return 1;
    if (count <= 0) return 0;
    /* The application has not switched, so that another request may follow. */
    if (from == worker && is_upgrade) {
        if (strncmp(bytes, switching, sizeof switching - 1) != 0) waiting = FOR_CONNECTION;
        is_upgrade = 0;
    }
    send_all(to, bytes, (size_t)count);
    return 1;
}

/* Reads what the client says. Returns 0 if it has gone. */
static int read_client(void)
{
    ssize_t count;
    if (waiting == FOR_EITHER_SIDE) return pass(CLIENT, worker);
    if (received == MAX_REQUEST) errx(1, "a request is too long");
    count = recv(CLIENT, request + received, MAX_REQUEST - received, 0);
    if (count < 0 && errno == EINTR) return 1;
    if (count <= 0) {
        /* The worker reads what there is, and then the end. */
        if (measure() == INCOMPLETE && received > 0) {
            length = received;
            put_request(0);
        }
        return 0;
    }
    received += (size_t)count;
    request[received] = '\0';
    if (waiting == FOR_REQUEST || waiting == FOR_CONNECTION) take_request();
    return 1;
}

static void watch(int epoll, int change, int fd, int is_wanted)
{
    struct epoll_event event = { .events = is_wanted ? EPOLLIN : 0, .data.fd = fd };
    if (epoll_ctl(epoll, change, fd, &event) != 0) err(1, "epoll");
}

static void run(void)
{
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    int has_client = 1;
    watch(epoll, EPOLL_CTL_ADD, worker, 1);
    watch(epoll, EPOLL_CTL_ADD, CLIENT, 1);
    while (has_client || waiting == FOR_ANSWER) {
        struct epoll_event event;
        int slot, count;
        /* The client may say more when it has its answer. */
        if (has_client) watch(epoll, EPOLL_CTL_MOD, CLIENT, waiting != FOR_ANSWER);
        slot = front_finished(&ring, 60000, epoll);
        if (slot == 0) look_at_slot();
        count = epoll_wait(epoll, &event, 1, 0);
        if (count != 1) continue;
        if (event.data.fd == worker && !pass(worker, CLIENT)) {
            if (front_finished(&ring, 0, -1) == 0) look_at_slot();
            return;
        }
        if (event.data.fd == CLIENT && has_client && waiting != FOR_ANSWER)
            has_client = read_client();
        if (!has_client) epoll_ctl(epoll, EPOLL_CTL_DEL, CLIENT, NULL);
    }
}

int main(int count, char **arguments)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char greeting[257];
    if (count != 2) errx(2, "usage: relay SOCKET");
    worker = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(address.sun_path, arguments[1], sizeof address.sun_path - 1);
    if (connect(worker, (struct sockaddr *)&address, sizeof address) != 0) err(1, "connect");
    if (!front_read_line(worker, greeting, sizeof greeting)) return 0;
    if (!strstr(greeting, " speaks=2")) errx(1, "the worker does not use the ring: %s", greeting);
    front_create(&ring, 1, 1, 1, REQUEST_BYTES, ANSWER_BYTES);
    front_clear_seat(&ring, 0);
    if (!front_offer(&ring, worker, 0)) errx(1, "the worker refuses the ring");
    greeting[strlen(greeting)] = '\n';
    send_all(CLIENT, greeting, (size_t)(strchr(greeting, '\n') - greeting) + 1);
    front_let_go(&ring, 0);
    run();
    front_dismiss(&ring, 0);
    return 0;
}
