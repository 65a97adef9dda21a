<?php
declare(strict_types=1);

/** An upload that is refused. The message is for the visitor. */
final class BadPicture extends RuntimeException
{
}
