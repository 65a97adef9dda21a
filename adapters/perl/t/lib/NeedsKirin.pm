package NeedsKirin;
use v5.16;
use warnings;

use Kirin::Front;
use Test::More;

# Skips the test file if the program is not built. A program that KIRIN_BINARY names must exist.

sub import {
    my $binary = eval { Kirin::Front::binary() };
    return if $binary;
    die $@ if length($ENV{KIRIN_BINARY} // '');
    plan skip_all => 'kirin is not built: cargo build -p kirin';
}

1;
