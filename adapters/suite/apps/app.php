<?php
// The application of the adapter suite's core for PHP. README.md says what each path does.
declare(strict_types=1);

const TEXT = ['Content-Type' => 'text/plain'];
const TABLE = 'memo';

define('DIRECTORY', getcwd());

/** Returns a file of the directory without the line end, or null if there is none. */
function slurp(string $name): ?string
{
    $file = DIRECTORY . "/$name";
    return is_file($file) ? rtrim(file_get_contents($file), "\n") : null;
}

/** Writes a file of the directory in one step. */
function spurt(string $name, string|int $text): void
{
    $file = DIRECTORY . "/$name";
    file_put_contents("$file.new", $text);
    rename("$file.new", $file);
}

/** No process outlives the directory of a failed test. */
function waitForFile(string $name): void
{
    clearstatcache();
    while (!file_exists(DIRECTORY . "/$name")) {
        if (!is_dir(DIRECTORY)) {
            exit(1);
        }
        usleep(10_000);
        clearstatcache();
    }
}

/** Tells a test that this point is reached, and waits until the test goes on. */
function meet(string $name): void
{
    spurt("begun.$name", getmypid());
    waitForFile("go.$name");
}

/** Sleeps for good, whatever signals come. */
function hang(): never
{
    while (true) {
        sleep(600);
    }
}

function killSelf(): never
{
    posix_kill(getmypid(), SIGKILL);
    hang();
}

/** Returns this many bytes, all values from 0 to 250 in turn. */
function pattern(int $length): string
{
    $unit = implode('', array_map('chr', range(0, 250)));
    return substr(str_repeat($unit, intdiv($length, 251) + 1), 0, $length);
}

function counted(string $content): string
{
    return strlen($content) . ' ' . md5($content);
}

function answer(string|int $body, int $status = 200, array $fields = []): array
{
    return [$status, $fields + TEXT, (string) $body];
}

function parts(string ...$parts): Generator
{
    yield from $parts;
}

function noted(iterable $parts): Generator
{
    try {
        yield from $parts;
    } finally {
        fwrite(STDERR, "the body is closed\n");
    }
}

function waitBetween(string $name): Generator
{
    yield "first\n";
    waitForFile("go.$name");
    yield "last\n";
}

function large(): Generator
{
    for ($count = 0; $count < 20; $count++) {
        yield pattern(251_000);
    }
}

function endless(string $name): Generator
{
    try {
        while (true) {
            yield str_repeat('x', 65_536);
        }
    } finally {
        spurt("closed.$name", getmypid());
    }
}

function dieIn(): Generator
{
    yield 'part';
    throw new RuntimeException('too late');
}

function dieFirst(): Generator
{
    throw new RuntimeException('no first part');
    yield '';
}

function killIn(): Generator
{
    yield 'part';
    killSelf();
}

function dieCaught(): array
{
    try {
        throw new RuntimeException('caught by the application');
    } catch (RuntimeException) {
        return answer('caught');
    }
}

function killOnce(string $name): array
{
    if (slurp("killed.$name") !== null) {
        return answer('survived');
    }
    spurt("killed.$name", '');
    killSelf();
}

function hangBegun(string $name): never
{
    spurt("begun.$name", getmypid());
    hang();
}

function hangInLoop(): never
{
    while (true) {
        continue;
    }
}

function leave(): array
{
    posix_kill(getmypid(), SIGTERM);
    return answer(getmypid());
}

function ignoreSignals(): array
{
    foreach ([SIGTERM, SIGQUIT, SIGUSR2, SIGPIPE] as $number) {
        pcntl_signal($number, SIG_IGN);
    }
    return answer(getmypid());
}

function many(): array
{
    $names = array_map(fn ($number) => "X-Field-$number", range(1, 100));
    return answer('many', 200, array_fill_keys($names, str_repeat('v', 300)));
}

function lines($input): array
{
    $lines = [];
    while (($line = fgets($input)) !== false) {
        $lines[] = $line;
    }
    return answer(count($lines) . ' ' . counted(implode('', $lines)));
}

function beyond(array $env, $input): array
{
    $content = stream_get_contents($input, (int) $env['CONTENT_LENGTH'] + 100);
    return answer(strlen($content) . ' ' . strlen(stream_get_contents($input, 100)));
}

function twice($input): array
{
    $first = counted(stream_get_contents($input));
    rewind($input);
    return answer(counted(stream_get_contents($input)) === $first ? "$first again" : 'another');
}

/** A status that is no number stays text, which no response can have. */
function statusOf(string $text): array
{
    return [is_numeric($text) ? (int) $text : $text, TEXT, "status $text"];
}

function waitFor(string $name): array
{
    meet($name);
    return answer(getmypid());
}

function said(string $text, string $body, $stream): array
{
    fwrite($stream, $text);
    return answer($body);
}

function printed(string $name): array
{
    echo "a line on standard output: $name\n";
    return answer('printed');
}

function environment(array $env): array
{
    $lines = '';
    foreach ($env as $name => $value) {
        $lines .= ctype_upper($name[0]) ? "$name=$value\n" : '';
    }
    return answer($lines);
}

define('VERSION', slurp('version') ?? 'none');
$requests = 0;

$application = function (array $env, $input) use (&$requests): array {
    [$path, $name] = [$env['PATH_INFO'], $env['QUERY_STRING']];
    if ($path === '/state') {
        return answer(getmypid() . " $requests");
    }
    $requests++;
    // Paths with a value in them.
    if (preg_match('#^/(env|bytes/|status/)(.*)#s', $path, $found)) {
        return match ($found[1]) {
            'env' => environment($env),
            'bytes/' => answer(pattern((int) $found[2])),
            'status/' => statusOf($found[2]),
        };
    }
    return match ($path) {
        '/scheme' => answer(($env['HTTPS'] ?? '') === 'on' ? 'https' : 'http'),
        '/change-env' => answer('changed'),
        '/echo' => answer(stream_get_contents($input), 200, [
            'Content-Type' => $env['CONTENT_TYPE'] ?? 'application/octet-stream',
        ]),
        '/length' => answer(counted(stream_get_contents($input))),
        '/input/lines' => lines($input),
        '/input/part' => answer(fread($input, 5)),
        '/input/beyond' => beyond($env, $input),
        '/input/twice' => twice($input),
        '/input/close' => fclose($input) ? answer('closed') : answer('open'),
        '/list' => answer('onetwo'),
        '/nothing' => answer(''),
        '/wrong-length' => answer('short', 200, ['Content-Length' => '1000']),
        '/iterate' => [200, TEXT, noted(parts('one', '', 'two'))],
        '/iterate/length' => [200, TEXT + ['Content-Length' => '6'], parts('one', 'two')],
        '/iterate/short' => [200, TEXT + ['Content-Length' => '9'], parts('one', 'two')],
        '/stream', => [200, TEXT, parts("part 1\n", "part 2\n", "part 3\n")],
        '/stream/wait' => [200, TEXT, waitBetween($name)],
        '/stream/large' => [200, TEXT, large()],
        '/stream/endless', '/writer/endless' => [200, TEXT, endless($name)],
        '/writer' => [200, TEXT, parts('one', '', 'two')],
        '/fields/bytes' => answer("caf\xe9", 200, ['X-Latin' => "caf\xe9", 'X-UTF-8' => 'café']),
        '/fields/repeated' => answer('cookies', 200, ['Set-Cookie' => ['a=1', 'b=2']]),
        '/fields/empty' => answer('empty', 200, ['X-Empty' => '']),
        '/fields/many' => many(),
        '/fields/hop-by-hop' => answer('kept', 200, ['Connection' => 'close', 'Keep-Alive' => 'x']),
        '/fields/forged' => answer('forged', 200, [
            'Kirin-File' => '1 2 3 4 5 /etc/passwd', 'Kirin-Cleanup' => '1',
        ]),
        '/fields/line-end' => answer('a', 200, ['X-A' => "a\r\nX-Evil: b"]),
        '/fields/line-feed' => answer('a', 200, ['X-A' => "a\nX-Evil: b"]),
        '/fields/return' => answer('a', 200, ['X-A' => "a\rb"]),
        '/fields/nul' => answer('a', 200, ['X-A' => "a\0b"]),
        '/fields/name-line-end' => answer('a', 200, ["X-A: 1\r\nX-Evil" => 'b']),
        '/odd/no-response' => null,
        '/odd/number-body' => [200, TEXT, 5],
        '/odd/no-fields' => [200],
        '/die/before' => throw new RuntimeException('a bad day'),
        '/die/first-part' => [200, TEXT, dieFirst()],
        '/die/in', '/die/in-iterator' => [200, TEXT, dieIn()],
        '/die/caught' => dieCaught(),
        '/exit' => exit(3),
        '/kill' => killSelf(),
        '/kill/in' => [200, TEXT, killIn()],
        '/kill/once' => killOnce($name),
        '/wait' => waitFor($name),
        '/hang' => hangBegun($name),
        '/hang/loop' => hangInLoop(),
        '/version' => answer(VERSION),
        '/pid' => answer(getmypid()),
        '/parent' => answer(posix_getppid()),
        '/random' => answer(mt_rand()),
        '/leave' => leave(),
        '/ignore-signals' => ignoreSignals(),
        '/log' => said("a line for the log: $name\n", 'logged', STDERR),
        '/print' => printed($name),
        '/program' => answer((string) shell_exec('echo hello')),
        default => answer('no such action', 404),
    };
};

// What `on-load` says happens while the application is loaded.
match (slurp('on-load')) {
    'die' => throw new RuntimeException('no such table: ' . TABLE),
    'lines' => throw new RuntimeException("no such table:\nback\\slash"),
    'exit' => exit(3),
    'hang' => hang(),
    'print' => print("failed by the application\nready\n"),
    'seed' => mt_srand(42),
    'wait' => meet('loading'),
    default => null,
};

return $application;
