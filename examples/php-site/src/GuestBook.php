<?php
declare(strict_types=1);

/** The entries, in SQLite. */
final class GuestBook
{
    private readonly PDO $database;

    public function __construct(string $path)
    {
        // PDO waits for another process that writes: 5 seconds.
        $this->database = new PDO("sqlite:$path", options: [PDO::ATTR_TIMEOUT => 5]);
        $this->database->exec('PRAGMA journal_mode = WAL');
        $this->database->exec(
            'CREATE TABLE IF NOT EXISTS entry (
                id INTEGER PRIMARY KEY,
                name TEXT NOT NULL,
                text TEXT NOT NULL,
                picture TEXT,
                written_at INTEGER NOT NULL
            )'
        );
    }

    public function add(string $name, string $text, ?string $picture): void
    {
        $this->database
            ->prepare('INSERT INTO entry (name, text, picture, written_at) VALUES (?, ?, ?, ?)')
            ->execute([$name, $text, $picture, time()]);
    }

    /** @return list<array{name: string, text: string, picture: ?string, written_at: int}> */
    public function newest(int $most): array
    {
        $rows = $this->database->prepare(
            'SELECT name, text, picture, written_at FROM entry ORDER BY id DESC LIMIT ?'
        );
        $rows->execute([$most]);
        return $rows->fetchAll(PDO::FETCH_ASSOC);
    }
}
