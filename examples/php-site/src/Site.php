<?php
declare(strict_types=1);

/** The pages of the site. */
final class Site
{
    private const NAME_LENGTH = 40;
    private const TEXT_LENGTH = 1000;

    public function __construct(
        private readonly GuestBook $book,
        private readonly Pictures $pictures,
        private readonly CsrfToken $csrfToken,
    ) {
    }

    public function answer(string $method, string $path): void
    {
        $method = $method === 'HEAD' ? 'GET' : $method;
        match ([$path, $method]) {
            ['/', 'GET'] => $this->list(),
            ['/', 'POST'] => $this->add(),
            ['/write', 'GET'] => $this->form('', ''),
            default => $this->refuse(404, 'There is no such page.'),
        };
    }

    /** The same page for everybody, so it has no form: a form has the token of one visitor. */
    private function list(): void
    {
        // Browsers ask each time. Kirin keeps the page for an hour, or until somebody posts an entry.
        header('Cache-Control: public, max-age=0, s-maxage=3600');
        View::show('list', 'Guest book', ['entries' => $this->book->newest(50)]);
    }

    private function form(string $name, string $text, ?string $problem = null): void
    {
        header('Cache-Control: private, no-store');
        http_response_code($problem === null ? 200 : 422);
        View::show('write', 'Write an entry', [
            'csrf' => $this->csrfToken->value(),
            'name' => $name,
            'text' => $text,
            'problem' => $problem,
        ]);
    }

    private function add(): void
    {
        if (!$this->csrfToken->isGiven($_POST['csrf'] ?? null)) {
            $this->refuse(403, 'This form is not from this site, or too old. Please load it again.');
            return;
        }
        $name = self::text($_POST['name'] ?? '', self::NAME_LENGTH);
        $text = self::text($_POST['text'] ?? '', self::TEXT_LENGTH);
        if ($name === null || $text === null) {
            $this->form($name ?? '', $text ?? '', 'Please give a name and a text.');
            return;
        }
        try {
            $picture = $this->pictures->keep($_FILES['picture'] ?? null);
        } catch (BadPicture $problem) {
            $this->form($name, $text, $problem->getMessage());
            return;
        }
        $this->book->add($name, $text, $picture);
        header('Location: /', true, 303);
    }

    private function refuse(int $status, string $reason): void
    {
        header('Cache-Control: private, no-store');
        http_response_code($status);
        View::show('refusal', 'Sorry', ['status' => $status, 'reason' => $reason]);
    }

    /** Returns the trimmed text, or null if it is no text, empty or too long. */
    private static function text(mixed $value, int $most): ?string
    {
        if (!is_string($value) || preg_match('//u', $value) !== 1) {
            return null;
        }
        $text = trim($value);
        $length = preg_match_all('/./us', $text);
        return $length > 0 && $length <= $most ? $text : null;
    }
}
