package Memo::Password;
use v5.16;
use warnings;

use Encode ();
use Memo::Random ();
use Memo::ConstantTime ();

# yescrypt with the cost that Debian uses for /etc/shadow ("j9T": 16 MB of memory, about 20 ms
# here), through Perl's own crypt(), which is the system's libcrypt. It has a salt, it is slow, it
# costs an attacker memory, it is in C, and it needs no module. PBKDF2 over Digest::SHA would be
# slow here and fast on an attacker's graphics card. crypt(5) has the format.
my $SETTING = '$y$j9T$';
my $SALT_LENGTH = 22;
my @CRYPT64 = ('.', '/', 0 .. 9, 'A' .. 'Z', 'a' .. 'z');

# The hash that is verified if the name is unknown, so that the answer takes as long as for a known
# name.
my $HASH_OF_NOBODY;

# The letters for one byte each. 256 values map to 64 letters, so every letter is equally likely.
# The last letter of yescrypt's 22 stands for the top two bits of 16 bytes, so it must be one of the
# first four.
sub _salt {
    my @bytes = unpack 'C*', Memo::Random::bytes($SALT_LENGTH);
    my $last = pop @bytes;
    return join('', map { $CRYPT64[$_ % 64] } @bytes) . $CRYPT64[$last % 4];
}

sub hash {
    my ($password) = @_;
    my $hash = crypt Encode::encode_utf8($password), $SETTING . _salt();
    # A libcrypt without yescrypt returns an error token or nothing. That must never be stored.
    die "crypt(3) has no yescrypt here\n" if !defined $hash || index($hash, $SETTING) != 0;
    return $hash;
}

sub matches {
    my ($password, $hash) = @_;
    my $again = crypt Encode::encode_utf8($password), $hash;
    return 0 if !defined $again || length $again < length $SETTING;
    return Memo::ConstantTime::equal($again, $hash);
}

# Takes as long as matches, and returns false.
sub matches_nobody {
    my ($password) = @_;
    $HASH_OF_NOBODY //= Memo::Password::hash('nobody');
    matches($password, $HASH_OF_NOBODY);
    return 0;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Password - password hashes: yescrypt through crypt(3)

=head1 SYNOPSIS

    my $hash = Memo::Password::hash('correct horse');
    Memo::Password::matches('correct horse', $hash) or die;

=cut
