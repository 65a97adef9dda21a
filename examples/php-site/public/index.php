<?php
// The front controller: every request that is no file of this directory.
declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    require __DIR__ . "/../src/$class.php";
});

$data = dirname(__DIR__) . '/data';
session_save_path("$data/sessions");
$site = new Site(
    new GuestBook("$data/guestbook.sqlite"),
    new Pictures("$data/pictures"),
    new CsrfToken(),
);
$path = rawurldecode((string) parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
$site->answer($_SERVER['REQUEST_METHOD'], $path);
