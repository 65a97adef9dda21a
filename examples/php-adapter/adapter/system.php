<?php
// What PHP has no functions for: system calls, the application's file, and lines for the log.
declare(strict_types=1);

const PR_SET_PDEATHSIG = 1;
const CLOSE_RANGE_CLOEXEC = 4;
const O_RDWR = 2;

function libc(): FFI
{
    static $libc;
    return $libc ??= FFI::cdef('
        int open(const char *path, int flags);
        int dup2(int from, int to);
        int close_range(unsigned first, unsigned last, int flags);
        int prctl(int option, unsigned long argument);
    ');
}

/** The application reads nothing, and what it prints goes to the log. */
function replaceStandardStreams(): void
{
    libc()->dup2(libc()->open('/dev/null', O_RDWR), 0);
    libc()->dup2(2, 1);
}

/** Programs that the application starts must get no descriptor of Kirin. */
function closeOthersOnExec(): void
{
    libc()->close_range(3, 0xffffffff, CLOSE_RANGE_CLOEXEC);
}

/** Has the kernel kill this process when its parent ends, also if it has ended already. */
function killWithParent(int $parent): void
{
    libc()->prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (posix_getppid() !== $parent) {
        exit(1);
    }
}

function outliveParent(): void
{
    libc()->prctl(PR_SET_PDEATHSIG, 0);
}

function loadApplication(string $file): Closure
{
    $application = (static fn () => require $file)();
    if (!is_callable($application)) {
        throw new RuntimeException("$file must return a function (\$env, \$input)");
    }
    return Closure::fromCallable($application);
}

/** Writes a line, and more lines below it that start with a space. */
function logLine(string $text): void
{
    $text = preg_replace('/\n(?!\s)/', "\n    ", rtrim($text));
    @fwrite(STDERR, 'kirin: worker ' . getmypid() . ": $text\n");
}
