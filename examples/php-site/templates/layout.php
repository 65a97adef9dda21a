<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title><?= $escape($title) ?> · Seven Peaks Hut</title>
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/guestbook.css">
</head>
<body>
<header>
<a class="brand" href="/">Seven Peaks Hut</a>
<a class="button" href="/write">Write an entry</a>
</header>
<main>
<?php require __DIR__ . "/$template.php"; ?>
</main>
<footer>A guest book in PHP, served by Kirin.</footer>
</body>
</html>
