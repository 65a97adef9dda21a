<?php
// A worker: accepts a connection of Kirin, and answers its requests one after the other.
declare(strict_types=1);

require __DIR__ . '/Connection.php';
require __DIR__ . '/Response.php';

final class Worker
{
    private bool $isLeaving = false;
    private int $requestsLeft;
    private string $greeting;
    /** The request that is being served. */
    private ?array $env = null;

    public function __construct(
        private Closure $application,
        private Socket $listener,
        private int $parent,
        array $options,
    ) {
        $this->requestsLeft = (int) $options['max-requests'];
        $generation = $options['generation'];
        $this->greeting = 'KIRIN/1 pid=' . getmypid() . " generation=$generation adapter=php/0.1\n";
        // What the app parent may have drawn already must not be the same in all workers.
        mt_srand();
        pcntl_async_signals(true);
        $this->takeSignals();
    }

    /** The application may have taken the signals from us, or ignored them. */
    private function takeSignals(): void
    {
        pcntl_signal(SIGTERM, fn () => $this->isLeaving = true);
        pcntl_signal(SIGUSR2, $this->endOverdue(...));
    }

    /** Returns when the worker must leave. */
    public function run(): void
    {
        while (!$this->mustLeave()) {
            [$read, $write, $except] = [[$this->listener], null, null];
            // This waits a second at most, and ends at once if a signal comes.
            if (!@socket_select($read, $write, $except, 1)) {
                continue;
            }
            $socket = @socket_accept($this->listener);
            // Another worker may have been faster.
            if ($socket) {
                closeOthersOnExec();
                $this->serve(new Connection($socket, $this->mustLeave(...)));
            }
        }
    }

    private function mustLeave(): bool
    {
        return $this->isLeaving || posix_getppid() !== $this->parent;
    }

    private function serve(Connection $connection): void
    {
        try {
            $connection->send($this->greeting);
            while (!$this->isLeaving && ($request = $connection->readRequest())) {
                [$this->env, $input] = $request;
                $this->isLeaving = $this->isLeaving || --$this->requestsLeft <= 0;
                $this->answer($connection, $input);
                $this->env = null;
                $this->takeSignals();
            }
            // A connection that ends between requests means that this worker is not needed.
            $this->isLeaving = true;
        } catch (ConnectionEnded) {
            // The client has left, or an error has cut the response. The next one may come.
        }
        $this->env = null;
        $connection->close();
    }

    private function answer(Connection $connection, $input): void
    {
        $response = new Response($connection, $this->env['REQUEST_METHOD']);
        try {
            $parts = $input ? ($this->application)($this->env, $input) : [507, [], "No room\n"];
            $response->send($this->isLeaving, ...$parts);
        } catch (ConnectionEnded $end) {
            throw $end;
        } catch (Throwable $error) {
            $this->logError($error);
            if ($response->hasBegun) {
                throw new ConnectionEnded();
            }
            $fields = ['Content-Type' => 'text/plain'];
            $response->send($this->isLeaving, 500, $fields, "Internal Server Error\n");
        }
    }

    private function logError(string|Throwable $error): void
    {
        ['REQUEST_METHOD' => $method, 'REQUEST_URI' => $target] = $this->env;
        $lines = explode("\n", (string) $error, 2);
        $lines[0] .= ' request_id=' . ($this->env['HTTP_X_REQUEST_ID'] ?? '');
        logLine("$method $target: " . implode("\n", $lines));
    }

    /** Kirin sends USR2 when a request takes too long, and kills this process a second later. */
    private function endOverdue(): void
    {
        if ($this->env) {
            $this->logError("took too long\n" . (new Exception())->getTraceAsString());
        }
        exit(1);
    }
}
