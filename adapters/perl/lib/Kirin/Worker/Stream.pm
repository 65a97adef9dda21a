package Kirin::Worker::Stream;
use v5.16;
use warnings;

use Kirin::Worker::Cleanup;
use Kirin::Worker::File;
use Kirin::Worker::Response;
use Kirin::Worker::Trace;
use Kirin::Worker::Writer;
use Plack::Util;
use Scalar::Util qw(blessed);

use constant READ_BYTES => 64 * 1024;

# "deliver" is code that sends the bytes of a complete response. "before_stream" is called before
# anything else is written to the socket. "watch" knows whether the application has written to
# psgix.io.
sub new {
    my ($class, %args) = @_;
    return bless {%args}, $class;
}

# Returns whether bytes may have been sent already, so that no other response can replace this one.
sub has_begun {
    my $self = shift;
    return $self->{begun} && !($self->{body_writer} && $self->{body_writer}->is_unsent);
}

# Returns whether the connection no longer speaks HTTP.
sub has_switched { $_[0]{switched} }

# Returns whether the head has announced a cleanup after this response.
sub cleanup_is_announced { $_[0]{cleanup_is_announced} }

# Sends a response that is not complete. Returns the bytes that are left to send: none.
sub send {
    my ($self, $response) = @_;
    if (ref $response eq 'CODE' || blessed $response && overload::Method($response, '&{}')) {
        $response->(
            sub {
                die "The application has called its responder twice\n" if $self->{begun};
                return $self->send_one($_[0]);
            }
        );
        if (!$self->{begun}) {
            return $self->leave_to_application if $self->{env}{'psgix.io'};
            die "The application has not called its responder\n";
        }
    }
    else {
        $self->send_one($response);
    }
    $self->{writer}->close if $self->{writer};
    return '';
}

# The application has written its response to psgix.io.
sub leave_to_application {
    my $self = shift;
    die "The application has returned no response, and has not written to psgix.io\n"
        if $self->{watch} && !$self->{watch}->has_written;
    $self->{begun} = $self->{switched} = 1;
    return '';
}

sub send_one {
    my ($self, $response) = @_;
    if (ref $response ne 'ARRAY') {
        return $self->leave_to_application if $self->{env}{'psgix.io'};
        die "The application's response is no array: ", $response // 'undef', "\n";
    }
    die "The application has written to psgix.io, so its response is not sent\n"
        if $self->{watch} && $self->{watch}->has_written;
    my ($status, $headers, $body) = @$response;
    $self->{cleanup_is_announced} = Kirin::Worker::Cleanup::is_wanted($self->{env});
    if (ref $body eq 'ARRAY') {
        my $bytes = Kirin::Worker::Response::whole($response, @$self{qw(env leaving)});
        $self->{begun} = 1;
        $self->{deliver}->($bytes);
        return;
    }
    !defined $body
        || ref $body eq 'GLOB'
        || blessed $body && grep { $body->can($_) } qw(getline path AUTOLOAD)
        or die "The response body is no array, no handle and no object with getline\n";
    my ($head, $length, $coding) = Kirin::Worker::Response::head($status, $headers);
    if (!$coding && blessed $body && $body->can('path') && $self->may_hand_back($status)) {
        my $file = Kirin::Worker::File::behind($body, $length, $self->{sendfile});
        return $self->hand_back($head, $file, $body) if defined $file;
    }
    # The length of a plain file is known. With it the front can read a small file completely and
    # free this worker.
    if (   !defined $length
        && !$coding
        && Plack::Util::is_real_fh($body)
        && Kirin::Worker::File::gives_bytes($body))
    {
        $length = Plack::Util::content_length($body);
    }
    my $framing = 'chunked';
    if ($status < 200) {
        $status == 101 && $self->{env}{'psgix.io'} or die "$status is no answer to this request\n";
        $framing = 'coded';
        $self->{switched} = 1;
    }
    elsif ($self->{env}{REQUEST_METHOD} eq 'HEAD' || Kirin::Worker::Response::has_no_body($status))
    {
        $framing = 'nothing';
        $head .= "Content-Length: $length\r\n"
            if defined $length && ($status == 304 || $status >= 200 && $status != 204);
    }
    elsif ($coding) {
        $framing = 'coded';
        $head .= "Transfer-Encoding: $coding\r\n";
    }
    elsif (defined $length) {
        $framing = 'length';
        $head .= "Content-Length: $length\r\n";
    }
    else {
        $head .= "Transfer-Encoding: chunked\r\n";
    }
    $head .= "Connection: close\r\n" if $self->{leaving};
    $head .= "Kirin-Cleanup: 1\r\n" if $self->{cleanup_is_announced};

    $self->{begun} = 1;
    $self->{before_stream}->() if $self->{before_stream};
    my $writer = $self->{body_writer} =
        Kirin::Worker::Writer->new($self->{socket}, "$head\r\n", $framing, $length);
    if (!defined $body) {
        # The client may wait for the head alone.
        $writer->flush;
        return $self->{writer} = $writer;
    }
    # An object may need time for its first bytes. A file does not.
    $writer->flush if !Plack::Util::is_real_fh($body);
    if ($framing ne 'nothing') {
        local $/ = \READ_BYTES;
        while (defined(my $bytes = $body->getline)) {
            $writer->write($bytes);
        }
    }
    $writer->close;
    # The client has its response, even if this fails.
    eval { $body->close if ref $body eq 'GLOB' || $body->can('close'); 1 }
        or Kirin::Worker::Trace::log_failure($self->{env}, $@);
    return;
}

# Returns whether the front may be asked to send a file. If the front cannot send it, it has a
# worker run the application again, which it can do only for these methods.
sub may_hand_back {
    my ($self, $status) = @_;
    my $env = $self->{env};
    return
           ($env->{REQUEST_METHOD} eq 'GET' || $env->{REQUEST_METHOD} eq 'HEAD')
        && !exists $env->{KIRIN_SENDFILE}
        && !Kirin::Worker::Response::has_no_body($status);
}

# The front sends the file. It has the file open already, and a slow client occupies no worker.
sub hand_back {
    my ($self, $head, $file, $body) = @_;
    $body->close if $body->can('close');
    $head .= "Kirin-File: $file\r\nContent-Length: 0\r\n";
    $head .= "Connection: close\r\n" if $self->{leaving};
    $head .= "Kirin-Cleanup: 1\r\n" if $self->{cleanup_is_announced};
    $self->{begun} = 1;
    $self->{deliver}->("$head\r\n");
    return;
}

1;

__END__

=head1 NAME

Kirin::Worker::Stream - sends a PSGI response that is not an array of strings

=head1 SYNOPSIS

    my $stream = Kirin::Worker::Stream->new(
        socket => $socket, env => $env, leaving => $leaving, sendfile => \@roots,
        deliver => sub { Kirin::Worker::Writer::write_all($socket, $_[0]) },
    );
    $stream->send($response);    # dies when it fails; $stream->has_begun tells if a 500 is still possible

=head1 DESCRIPTION

This module sends delayed responses, the streaming writer, filehandles and objects with C<getline>.
A body without a known length is sent in chunks, so that the front can distinguish its end from a
worker that died.

A file with C<path> is handed back to the front, which sends it. L<Kirin::Worker::File> describes
which files these are.

=cut
