<?php
// A connection of Kirin: reads requests by their lengths, and writes bytes.
declare(strict_types=1);

final class ConnectionEnded extends Exception
{
}

final class Connection
{
    private const READ_BYTES = 65_536;

    public function __construct(private Socket $socket, private Closure $mustLeave)
    {
        socket_set_block($socket);
        // Each second without a request the worker looks whether it must leave.
        socket_set_option($socket, SOL_SOCKET, SO_RCVTIMEO, ['sec' => 1, 'usec' => 0]);
    }

    /**
     * Returns the variables of the next request, and a stream with its body. Large bodies are in a
     * temporary file. There is no stream if the disk has no room for the body. Returns null if the
     * connection has ended, or if the worker must leave.
     */
    public function readRequest(): ?array
    {
        $bytes = $this->receive(isIdle: true);
        if ($bytes === '') {
            return null;
        }
        while (($colon = strpos($bytes, ':')) === false) {
            $bytes .= $this->receive();
        }
        $comma = $colon + 1 + (int) $bytes;
        while (strlen($bytes) <= $comma) {
            $bytes .= $this->receive();
        }
        $env = [];
        $texts = explode("\0", substr($bytes, $colon + 1, $comma - $colon - 2));
        foreach (array_chunk($texts, 2) as [$name, $value]) {
            $env[$name] = $value;
        }
        $input = fopen('php://temp', 'w+');
        $part = substr($bytes, $comma + 1);
        $isKept = @fwrite($input, $part) === strlen($part);
        $left = (int) $env['CONTENT_LENGTH'] - strlen($part);
        while ($left > 0) {
            $part = $this->receive();
            $left -= strlen($part);
            $isKept = $isKept && @fwrite($input, $part) === strlen($part);
        }
        rewind($input);
        return [$env, $isKept ? $input : null];
    }

    public function send(string $bytes): void
    {
        while ($bytes !== '') {
            $count = @socket_write($this->socket, $bytes);
            if ($count === false && socket_last_error($this->socket) !== SOCKET_EINTR) {
                throw new ConnectionEnded();
            }
            $bytes = substr($bytes, (int) $count);
        }
    }

    public function close(): void
    {
        socket_close($this->socket);
    }

    private function receive(bool $isIdle = false): string
    {
        while (true) {
            $count = @socket_recv($this->socket, $bytes, self::READ_BYTES, 0);
            if ($count > 0) {
                return $bytes;
            }
            $error = socket_last_error($this->socket);
            $hasEnded = $count === 0 || !in_array($error, [SOCKET_EAGAIN, SOCKET_EINTR], true);
            if ($hasEnded || ($isIdle && ($this->mustLeave)())) {
                return $isIdle ? '' : throw new ConnectionEnded();
            }
        }
    }
}
