package Kirin::Worker::Writer;
use v5.16;
use warnings;

use Errno qw(EINTR);
use Kirin::Log;
use Socket qw(MSG_NOSIGNAL);

# Thrown if the front no longer reads, because its client has disconnected.
our $GONE = bless \(my $reason = "the client has gone\n"), 'Kirin::Worker::Gone';

# $framing is the framing of the body: "length", "chunked", "coded" (the application has done it),
# "nothing".
sub new {
    my ($class, $socket, $head, $framing, $length) = @_;
    return bless { socket => $socket, pending => $head, framing => $framing, left => $length },
        $class;
}

# Returns whether nothing has been sent yet, not even a part of the head.
sub is_unsent { exists $_[0]{pending} }

# Writes a part of the body.
sub write {
    my ($self, $bytes) = @_;
    die "The body has been closed already\n" if $self->{closed};
    return if !length $bytes || $self->{framing} eq 'nothing';
    utf8::downgrade($bytes, 1)
        or die "Wide character in the response body: encode it before it is sent\n";
    if ($self->{framing} eq 'chunked') {
        $bytes = sprintf "%x\r\n%s\r\n", length $bytes, $bytes;
    }
    elsif ($self->{framing} eq 'length') {
        if (length $bytes > $self->{left}) {
            Kirin::Log::line(
                "kirin: worker $$: the response body is longer than its Content-Length; it is cut")
                if !$self->{warned}++;
            $bytes = substr $bytes, 0, $self->{left};
        }
        $self->{left} -= length $bytes;
    }
    my $pending = delete $self->{pending};
    write_all($self->{socket}, defined $pending ? $pending . $bytes : $bytes);
    return;
}

# Ends the body.
sub close {
    my $self = shift;
    return if $self->{closed}++;
    if ($self->{framing} eq 'length' && $self->{left}) {
        die "The response body is $self->{left} bytes shorter than its Content-Length\n";
    }
    my $rest = delete $self->{pending} // '';
    $rest .= "0\r\n\r\n" if $self->{framing} eq 'chunked';
    write_all($self->{socket}, $rest) if $rest ne '';
    return;
}

# Sends the head if it has not been sent yet.
sub flush {
    my $self = shift;
    my $pending = delete $self->{pending} // return;
    write_all($self->{socket}, $pending);
}

# Writes to the last byte, or dies. Returns true.
sub write_all {
    my ($socket, $bytes) = @_;
    my $at = 0;
    while ($at < length $bytes) {
        # The application may have changed the handler of SIGPIPE.
        my $count = send $socket, $at ? substr($bytes, $at) : $bytes, MSG_NOSIGNAL;
        if (defined $count) {
            $at += $count;
        }
        elsif ($! != EINTR) {
            die $GONE;
        }
    }
    return 1;
}

1;

__END__

=head1 NAME

Kirin::Worker::Writer - the streaming writer that PSGI gives an application

=head1 SYNOPSIS

    my $writer = $responder->([200, ['Content-Type' => 'text/plain']]);
    $writer->write("hello ");
    $writer->write("world\n");
    $writer->close;

=head1 DESCRIPTION

C<write> returns when the front has taken the bytes. The front keeps up to a megabyte for a slow
client. C<write> dies if the client has disconnected, so that an application that writes in a loop
ends.

=cut
