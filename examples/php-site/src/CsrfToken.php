<?php
declare(strict_types=1);

/** A secret of the visitor's session that forms send back: other sites cannot know it. */
final class CsrfToken
{
    public function value(): string
    {
        self::openSession();
        return $_SESSION['csrf'] ??= bin2hex(random_bytes(16));
    }

    public function isGiven(mixed $given): bool
    {
        // A visitor without a session has no token, and needs no new one to be refused.
        if (!is_string($given) || !isset($_COOKIE[session_name()])) {
            return false;
        }
        self::openSession();
        return isset($_SESSION['csrf']) && hash_equals($_SESSION['csrf'], $given);
    }

    private static function openSession(): void
    {
        if (session_status() !== PHP_SESSION_ACTIVE) {
            session_start([
                'use_strict_mode' => true,
                'cookie_httponly' => true,
                'cookie_samesite' => 'Lax',
                'cookie_secure' => ($_SERVER['HTTPS'] ?? '') === 'on',
                // The site says itself what may be kept.
                'cache_limiter' => '',
                // Debian cleans its own directory of sessions only.
                'gc_probability' => 1,
            ]);
        }
    }
}
