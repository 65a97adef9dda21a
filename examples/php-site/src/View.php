<?php
declare(strict_types=1);

/** Templates: PHP files that write HTML, inside of templates/layout.php. */
final class View
{
    /** @param array<string, mixed> $values the variables of the template */
    public static function show(string $template, string $title, array $values): void
    {
        $escape = static fn (string $text): string => htmlspecialchars($text, ENT_QUOTES | ENT_HTML5);
        header('Content-Type: text/html; charset=UTF-8');
        extract($values);
        require __DIR__ . '/../templates/layout.php';
    }
}
