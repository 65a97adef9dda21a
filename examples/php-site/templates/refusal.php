<p class="status"><?= $status ?></p>
<h1>Sorry</h1>
<p><?= $escape($reason) ?> <a href="/">To the guest book</a></p>
