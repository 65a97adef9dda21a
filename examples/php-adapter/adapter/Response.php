<?php
// Writes a response: a string with its length, or the parts that a generator makes, as chunks.
declare(strict_types=1);

final class Response
{
    private const FIELD = '/^[!#$%&\'*+.^_`|~0-9A-Za-z-]+: [^\r\n\0]*$/D';
    // Fields about the connection and the framing of the body, and those of the adapter.
    private const NOT_FOR_APPLICATIONS = [
        'connection', 'keep-alive', 'content-length', 'transfer-encoding',
        'kirin-file', 'kirin-cleanup',
    ];

    public bool $hasBegun = false;

    public function __construct(private Connection $connection, private string $method)
    {
    }

    /** The values of `$fields` are texts, or lists of texts. */
    public function send(bool $isLast, int $status, array $fields, string|iterable $body): void
    {
        if ($status < 200 || $status > 999) {
            throw new RangeException("$status is no status of a response");
        }
        $head = "HTTP/1.1 $status\r\n";
        $length = is_string($body) ? strlen($body) : null;
        foreach ($fields as $name => $values) {
            foreach ((array) $values as $value) {
                $head .= $this->line((string) $name, (string) $value);
            }
            // The body of HEAD may have been left out.
            if ($this->method === 'HEAD' && strtolower((string) $name) === 'content-length') {
                $length = (int) $values;
            }
        }
        $hasBody = $status !== 204 && $status !== 304;
        if ($hasBody) {
            $head .= $length === null ? 'Transfer-Encoding: chunked' : "Content-Length: $length";
            $head .= "\r\n";
        }
        $head .= $isLast ? "Connection: close\r\n\r\n" : "\r\n";
        if (!$hasBody || $this->method === 'HEAD') {
            $this->write($head);
        } elseif (is_string($body)) {
            // A small response is one write.
            $this->write($head . $body);
        } else {
            $this->sendChunks($head, $body);
        }
    }

    private function line(string $name, string $value): string
    {
        if (!preg_match(self::FIELD, "$name: $value")) {
            throw new UnexpectedValueException("the field $name has characters that no field has");
        }
        $isOurs = in_array(strtolower($name), self::NOT_FOR_APPLICATIONS, true);
        return $isOurs ? '' : "$name: $value\r\n";
    }

    private function sendChunks(string $head, iterable $parts): void
    {
        foreach ($parts as $part) {
            // An empty chunk would be the end.
            if ($part !== '') {
                $this->write($head . dechex(strlen($part)) . "\r\n$part\r\n");
                $head = '';
            }
        }
        $this->write("{$head}0\r\n\r\n");
    }

    private function write(string $bytes): void
    {
        $this->hasBegun = true;
        $this->connection->send($bytes);
    }
}
