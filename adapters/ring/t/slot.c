/*
 * A front for tests that are a worker themselves: it puts what they say into the only slot of a
 * ring, and tells what is in the slot afterwards.
 *
 *     slot REQUEST-BYTES ANSWER-BYTES      STDIN is the worker's connection, STDOUT the test's
 *
 * The test sends the length of a request and the request. It gets the phase of the slot after the
 * next report, the length of the answer, and the answer. A request without bytes only asks for the
 * next report. Numbers have 32 bits, in the order of the machine.
 */
#define _GNU_SOURCE
#include "front.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEST STDOUT_FILENO
#define PATIENCE 60000

static front ring;

static int read_all(void *to, size_t bytes)
{
    return bytes == 0 || recv(TEST, to, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

static void tell(void)
{
    uint32_t words[2] = { 0, 0 };
    const char *answer = front_answer(&ring, 0);
    while (front_finished(&ring, PATIENCE, -1) < 0) { }
    words[0] = (uint32_t)front_word(&ring, 0, PHASE);
    if (words[0] == ANSWERED || words[0] == ANSWERED_CLEANS_UP)
        words[1] = (uint32_t)front_word(&ring, 0, ANSWER_LENGTH);
    if (send(TEST, words, sizeof words, MSG_NOSIGNAL) < 0
        || send(TEST, answer, words[1], MSG_NOSIGNAL) < 0)
        exit(0);
}

int main(int count, char **arguments)
{
    static char request[1 << 20];
    uint32_t length;
    if (count != 3) errx(2, "usage: slot REQUEST-BYTES ANSWER-BYTES");
    front_create(&ring, 1, 1, 1, strtoul(arguments[1], NULL, 10), strtoul(arguments[2], NULL, 10));
    front_clear_seat(&ring, 0);
    if (!front_offer(&ring, STDIN_FILENO, 0)) errx(1, "the worker refuses the ring");
    for (;;) {
        if (!read_all(&length, sizeof length)) return 0;
        if (length > sizeof request || !read_all(request, length)) return 0;
        front_let_go(&ring, 0);
        if (length > 0) front_put(&ring, 0, 0, request, length);
        tell();
    }
}
