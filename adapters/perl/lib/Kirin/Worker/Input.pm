package Kirin::Worker::Input;
use v5.16;
use warnings;

use Errno qw(EINTR EMFILE);
# Perl loads this module when a handle of a string is first opened. It then uses an @INC that the
# application may have changed.
use PerlIO::scalar;
use POSIX ();

# Bodies of up to this size stay in memory. Longer ones go to a file without a name.
use constant MEMORY_BYTES => 1024 * 1024;
use constant READ_BYTES   => 256 * 1024;

# Reads the rest of a body of $length bytes. $received came with the head. Returns a handle that can
# be read and sought, or nothing if the front has gone. If the body cannot be kept, it returns
# nothing and the reason, and has read the body to its end, so that another request can follow.
sub receive {
    my ($socket, $length, $received) = @_;
    return receive_file($socket, $length, $received) if $length > MEMORY_BYTES;
    while ((my $missing = $length - length $received) > 0) {
        my $count = sysread $socket, $received, $missing, length $received;
        return if !$count && (defined $count || $! != EINTR);
    }
    return of_bytes($received);
}

# Returns a handle of a body that the front has handed over as a descriptor, or nothing and the
# reason. The descriptor is negative if there was no room for it in this process.
sub of_descriptor {
    my $descriptor = shift;
    return (undef, 'its file cannot be taken over: ' . POSIX::strerror(EMFILE)) if $descriptor < 0;
    open my $handle, '<&=', $descriptor or return (undef, "its file cannot be taken over: $!");
    binmode $handle;
    return $handle;
}

# Returns a handle of a body that is complete.
sub of_bytes {
    my $body = shift;
    open my $handle, '<', \$body or die "handle of a request body: $!";
    return $handle;
}

sub receive_file {
    my ($socket, $length, $received) = @_;
    my $reason;
    # A limit on the size of files (RLIMIT_FSIZE) would end the process with this signal.
    local $SIG{XFSZ} = 'IGNORE';
    open my $handle, '+>:raw', undef or $reason = $!;
    while (1) {
        write_all($handle, $received) or $reason = $! if !$reason;
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
    sysseek $handle, 0, 0 or $reason = $! if !$reason;
    return $reason ? (undef, "no room for it in a temporary file: $reason") : $handle;
}

# Writes without a buffer, so that each error is that of these bytes.
sub write_all {
    my ($handle, $bytes) = @_;
    my $at = 0;
    while ($at < length $bytes) {
        my $count = syswrite $handle, $bytes, length($bytes) - $at, $at;
        if (defined $count) {
            $at += $count;
        }
        elsif ($! != EINTR) {
            return 0;
        }
    }
    return 1;
}

1;

__END__

=head1 NAME

Kirin::Worker::Input - the body of a request as psgi.input

=head1 SYNOPSIS

    my ($input, $reason) =
        Kirin::Worker::Input::receive($socket, $env->{CONTENT_LENGTH}, $what_came_with_the_head);

=head1 DESCRIPTION

The front has read the complete body from the client before it sends a request, so this waits for no
client. The handle can be sought, which C<psgix.input.buffered> promises.

A long body is in a file of the front, and comes as a descriptor if this process can receive one
(L<Kirin::Ring>). Otherwise the worker copies it to a file of its own in C<TMPDIR>. A body that does
not fit there is refused with 507 (RFC 4918 section 11.5), and the worker serves on.

=cut
