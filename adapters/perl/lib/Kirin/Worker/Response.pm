package Kirin::Worker::Response;
use v5.16;
use warnings;

use Kirin::Log;
use Kirin::Worker::Cleanup;
use Kirin::Worker::Writer;

# Fields about the framing of the body, the future of connection and worker, and the file that the
# front must send. An application may not set them.
my %FRAMING = map { $_ => 1 }
    qw(content-length transfer-encoding connection keep-alive kirin-cleanup kirin-file);

# Names that have been checked, and whether a field can have them.
my %is_name;
use constant KNOWN_NAMES => 1000;

# Responses with these statuses have no body (RFC 9110 section 6.4.1).
sub has_no_body { $_[0] == 204 || $_[0] == 304 || $_[0] < 200 }

# Returns the bytes of a response whose body is an array. Dies if it cannot be sent.
sub whole {
    my ($response, $env, $leaving) = @_;
    my ($status, $headers, $body) = @$response;
    my ($head, $length, $coding) = head($status, $headers);
    $status >= 200 or die "$status is not the status of a whole response\n";
    no warnings 'uninitialized';
    # An undefined element is empty, as with other servers.
    $body = @$body == 1 ? $body->[0] // '' : join '', @$body;
    utf8::downgrade($body, 1)
        or die "Wide character in the response body: encode it before it is sent\n";
    if ($env->{REQUEST_METHOD} eq 'HEAD' || has_no_body($status)) {
        # This is the length that the body of a GET would have. An empty body stands for one that
        # was left out.
        $length //= length $body if length $body;
        $body = '';
        undef $length if has_no_body($status) && $status != 304;
    }
    elsif ($coding) {
        undef $length;
        $head .= "Transfer-Encoding: $coding\r\n";
    }
    else {
        # The application's length may be wrong. This one is correct.
        $length = length $body;
    }
    $head .= "Content-Length: $length\r\n" if defined $length;
    $head .= "Connection: close\r\n" if $leaving;
    $head .= "Kirin-Cleanup: 1\r\n" if Kirin::Worker::Cleanup::is_wanted($env);
    return "$head\r\n$body";
}

# Returns status line and field lines without framing, and the application's Content-Length and
# transfer coding.
sub head {
    my ($status, $headers) = @_;
    ($status // '') =~ /\A[1-9][0-9][0-9]\z/
        or die 'Status of the response is not a number of three digits: ', $status // 'undef', "\n";
    ref $headers eq 'ARRAY' or die "The headers of the response are no array\n";
    my $head = "HTTP/1.1 $status\r\n";
    my $lines = 1;
    my ($length, $coding);
    no warnings 'uninitialized';
    for (my $i = 0; $i < @$headers; $i += 2) {
        my ($name, $value) = @$headers[$i, $i + 1];
        if (exists $FRAMING{ lc $name }) {
            $length = $value if lc $name eq 'content-length' && $value =~ /\A[0-9]+\z/;
            $coding = $value if lc $name eq 'transfer-encoding' && lc $value eq 'chunked';
            next;
        }
        next if !($is_name{$name} // is_name($name)) && $name !~ /[\r\n\0]/;
        $head .= "$name: $value\r\n";
        $lines++;
    }
    # A line end inside a value would add lines, or a complete response. Other control characters,
    # which the front does not accept, become spaces (RFC 9110 section 5.5).
    if (($head =~ tr/\x00-\x08\x0A-\x1F\x7F//) != 2 * $lines) {
        refuse_line_ends($headers);
        $head =~ tr/\x01-\x08\x0B\x0C\x0E-\x1F\x7F/ /;
    }
    utf8::downgrade($head, 1)
        or die "Wide character in the response headers: encode them before they are sent\n";
    return ($head, $length, $coding);
}

# Returns whether a field can have this name (RFC 9110 section 5.1). The front accepts no other
# name. So such a field is left out, and the log has one line about it.
sub is_name {
    my $name = shift;
    %is_name = () if keys %is_name >= KNOWN_NAMES;
    return $is_name{$name} = 1 if $name =~ /\A[!#\$%&'*+.^_`|~0-9A-Za-z-]+\z/;
    $is_name{$name} = 0;
    my $shown = $name =~ s/[^!-~]/?/gr;
    Kirin::Log::line(
        "kirin: worker $$: the response header '$shown' is left out: this is no name of a field")
        if $name !~ /[\r\n\0]/;
    return 0;
}

# Sends an informational response, such as 103, before the final one.
sub send_informational {
    my ($socket, $status, $headers) = @_;
    # The front has already sent 100 itself. 101 ends HTTP on the connection.
    return if $status eq '100';
    $status =~ /\A1[0-9][0-9]\z/ && $status > 101 or die "Not an informational response: $status\n";
    my ($head) = head($status, $headers // []);
    Kirin::Worker::Writer::write_all($socket, "$head\r\n");
    return;
}

sub refuse_line_ends {
    my $headers = shift;
    no warnings 'uninitialized';
    for (my $i = 0; $i < @$headers; $i += 2) {
        next if "$headers->[$i]$headers->[$i + 1]" !~ /[\r\n\0]/;
        (my $name = $headers->[$i]) =~ s/[^!-~]/?/g;
        die "Line end or NUL in the response header $name\n";
    }
}

# Returns the response for a failure of the application. The log has the reason.
sub internal_server_error { return of_worker(500, 'Internal Server Error', @_) }

# Returns the response for a request whose body cannot be kept. The log has the reason.
sub insufficient_storage { return of_worker(507, 'Insufficient Storage', @_) }

# Returns a response of which the text is its reason phrase. The visitor gets the id of the request,
# as in Kirin's own responses, and the log has the reason beside it.
sub of_worker {
    my ($status, $text, $env, $leaving) = @_;
    my @fields = ('Content-Type' => 'text/plain');
    my $id = $env->{HTTP_X_REQUEST_ID};
    $text .= "\n";
    if (defined $id && $id =~ /\A[!-~]+\z/) {
        push @fields, 'X-Request-Id' => $id;
        $text .= "Request id: $id\n";
    }
    return whole([$status, \@fields, [$text]], $env, $leaving);
}

1;

__END__

=head1 NAME

Kirin::Worker::Response - the bytes of a complete PSGI response

=head1 SYNOPSIS

    my $bytes = Kirin::Worker::Response::whole([200, ['Content-Type' => 'text/plain'], ['hello']], $env);

=head1 DESCRIPTION

C<whole> makes one string of a response whose body is an array, so that one system call sends it.
C<head> makes status and headers of any response. L<Kirin::Worker::Stream> uses it for the other
responses.

Both die if a response cannot be sent: a status that is not a number of three digits, a header value
with a line end, a character above 255 in headers or body. The worker then answers 500 and logs the
reason.

=cut
