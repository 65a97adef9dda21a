package Kirin::Worker::Input;
use v5.16;
use warnings;

use Errno qw(EINTR);
# Perl loads this module when a handle of a string is first opened. It then uses an @INC that the
# application may have changed.
use PerlIO::scalar;

# Bodies of up to this size stay in memory. Longer ones go to a file without a name.
use constant MEMORY_BYTES => 1024 * 1024;
use constant READ_BYTES   => 256 * 1024;

# Reads the rest of a body of $length bytes. $received came with the head. Returns a handle that can
# be read and sought, or nothing if the front has gone.
sub receive {
    my ($socket, $length, $received) = @_;
    return receive_file($socket, $length, $received) if $length > MEMORY_BYTES;
    while ((my $missing = $length - length $received) > 0) {
        my $count = sysread $socket, $received, $missing, length $received;
        return if !$count && (defined $count || $! != EINTR);
    }
    return of_bytes($received);
}

# Returns a handle of a body that is complete.
sub of_bytes {
    my $body = shift;
    open my $handle, '<', \$body or die "handle of a request body: $!";
    return $handle;
}

sub receive_file {
    my ($socket, $length, $received) = @_;
    open my $handle, '+>:raw', undef or die "file for a request body: $!\n";
    # The application's $\ would add its text to each call of print.
    local ($\, $,);
    while (1) {
        print {$handle} $received or die "file for a request body: $!\n";
        $length -= length $received;
        last if $length < 1;
        my $count;
        until (
            defined(
                $count = sysread $socket, $received, $length < READ_BYTES ? $length : READ_BYTES
            )
            )
        {
            return if $! != EINTR;
        }
        return if !$count;
    }
    seek $handle, 0, 0 or die "file for a request body: $!\n";
    return $handle;
}

1;

__END__

=head1 NAME

Kirin::Worker::Input - the body of a request as psgi.input

=head1 SYNOPSIS

    my $input = Kirin::Worker::Input::receive($socket, $env->{CONTENT_LENGTH}, $what_came_with_the_head);

=head1 DESCRIPTION

The front has read the complete body from the client before it sends a request, so this waits for no
client. The handle can be sought, which C<psgix.input.buffered> promises.

=cut
