<h1>Guest book</h1>
<?php foreach ($entries as $entry): ?>
<article>
<p><?= nl2br($escape($entry['text'])) ?></p>
<?php if ($entry['picture'] !== null): ?>
<img src="/pictures/<?= $escape($entry['picture']) ?>" alt="">
<?php endif ?>
<p class="by"><?= $escape($entry['name']) ?>, <time><?= gmdate('Y-m-d', $entry['written_at']) ?></time></p>
</article>
<?php endforeach ?>
