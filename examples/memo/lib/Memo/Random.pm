package Memo::Random;
use v5.16;
use warnings;

my $TOKEN_BYTES = 18;

# Returns bytes from the kernel's generator.
sub bytes {
    my ($count) = @_;
    open my $source, '<:raw', '/dev/urandom' or die "cannot open /dev/urandom: $!\n";
    my $got = sysread $source, my ($bytes), $count;
    die "cannot read /dev/urandom\n" if !defined $got || $got != $count;
    return $bytes;
}

# Returns 144 unguessable bits as 36 hexadecimal digits.
sub token { return unpack 'H*', bytes($TOKEN_BYTES) }

1;

__END__

=encoding utf8

=head1 NAME

Memo::Random - unguessable bytes and tokens

=head1 SYNOPSIS

    my $cookie = Memo::Random::token();
    my $salt   = Memo::Random::bytes(16);

=cut
