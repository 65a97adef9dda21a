<?php
// The application: a function that gets a request, and returns a status, fields and a body.
declare(strict_types=1);

const TEXT = ['Content-Type' => 'text/plain; charset=utf-8'];

// Each part is sent at once.
function parts(): Generator
{
    foreach ([3, 2, 1] as $number) {
        yield "$number\n";
        usleep(200_000);
    }
    yield "go\n";
}

// A large body is a temporary file, which is never in memory as a whole.
function upload($input): array
{
    $hash = hash_init('sha256');
    hash_update_stream($hash, $input);
    return [200, TEXT, hash_final($hash) . "\n"];
}

return fn (array $env, $input): array => match ($env['PATH_INFO']) {
    '/' => [200, TEXT, "Hello, {$env['REMOTE_ADDR']}. This is PHP.\n"],
    '/count' => [200, TEXT, parts()],
    '/upload' => upload($input),
    '/fail' => throw new RuntimeException('a bad day'),
    default => [404, TEXT, "There is no such page.\n"],
};
