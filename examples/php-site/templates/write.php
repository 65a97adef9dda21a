<h1>Write an entry</h1>
<?php if ($problem !== null): ?>
<p class="problem" role="alert"><?= $escape($problem) ?></p>
<?php endif ?>
<form method="post" action="/" enctype="multipart/form-data">
<input type="hidden" name="csrf" value="<?= $escape($csrf) ?>">
<label for="name">Name</label>
<input id="name" name="name" value="<?= $escape($name) ?>" required maxlength="40" autocomplete="name">
<label for="text">Text</label>
<textarea id="text" name="text" rows="5" required maxlength="1000"><?= $escape($text) ?></textarea>
<label for="picture">Picture, if you like: at most 256 KB</label>
<input id="picture" name="picture" type="file" accept="image/jpeg,image/png,image/gif,image/webp">
<button>Save</button>
</form>
