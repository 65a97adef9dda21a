<?php
declare(strict_types=1);

/** The pictures that visitors upload. */
final class Pictures
{
    private const EXTENSIONS = [
        IMAGETYPE_JPEG => 'jpg',
        IMAGETYPE_PNG => 'png',
        IMAGETYPE_GIF => 'gif',
        IMAGETYPE_WEBP => 'webp',
    ];

    public function __construct(private readonly string $directory)
    {
    }

    /**
     * Keeps an upload and returns its new name, or null if there was none. The name and the type
     * that the browser sends have no influence: the contents decide.
     *
     * @throws BadPicture
     */
    public function keep(mixed $upload): ?string
    {
        $error = $upload['error'] ?? UPLOAD_ERR_NO_FILE;
        if ($error === UPLOAD_ERR_NO_FILE) {
            return null;
        }
        if ($error === UPLOAD_ERR_INI_SIZE) {
            throw new BadPicture('The picture has more than 256 KB.');
        }
        if ($error !== UPLOAD_ERR_OK || !is_uploaded_file($upload['tmp_name'])) {
            throw new BadPicture('The picture has not arrived. Please try again.');
        }
        $type = @getimagesize($upload['tmp_name'])[2] ?? null;
        if (!isset(self::EXTENSIONS[$type])) {
            throw new BadPicture('Only JPEG, PNG, GIF and WebP are pictures here.');
        }
        $hash = substr(hash_file('sha256', $upload['tmp_name']), 0, 32);
        $name = "$hash." . self::EXTENSIONS[$type];
        if (!move_uploaded_file($upload['tmp_name'], "$this->directory/$name")) {
            throw new BadPicture('The picture could not be kept. Please try again.');
        }
        return $name;
    }
}
