package Http10;
use v5.16;
use warnings;

use HTTP::Response;
use IO::Socket::INET;

# Speaks HTTP/1.0 in place of Plack::LWPish: one request for each connection, which the server
# closes.
#
#     local *Plack::LWPish::request = \&Http10::request;

sub request {
    my (undef, $request) = @_;
    my $uri = $request->uri;
    my $socket = IO::Socket::INET->new(PeerAddr => $uri->host, PeerPort => $uri->port)
        or die "connect: $!";
    my $body = $request->content;
    if (ref $body) {
        my $collected = '';
        while (defined(my $part = $body->())) {
            last if $part eq '';
            $collected .= $part;
        }
        $body = $collected;
    }
    $request->header('Content-Length' => length $body)
        if length $body || $request->method eq 'POST';
    $request->header(Host => $uri->host_port);
    my $head = join "\r\n", $request->method . ' ' . $uri->path_query . ' HTTP/1.0',
        split /\n/, $request->headers->as_string;
    my $bytes = "$head\r\n\r\n$body";
    local $SIG{PIPE} = 'IGNORE';
    while (length $bytes) {
        my $count = syswrite($socket, $bytes) // last;
        substr $bytes, 0, $count, '';
    }
    my $answer = do { local $/; readline($socket) // '' };
    my $response = HTTP::Response->parse($answer);
    $response->request($request);
    return $response;
}

1;
