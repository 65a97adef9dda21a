package RawClient;
use v5.16;
use warnings;

# Sends requests unchanged over one kept connection, and reads responses that have a length.
#
#     my $client = RawClient->new(sub { IO::Socket::UNIX->new($path) });
#     my ($status, $body) = $client->ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n");

sub new {
    my ($class, $connect) = @_;
    return bless { connect => $connect }, $class;
}

sub ask {
    my ($self, $request) = @_;
    my $socket = $self->{socket} //= $self->{connect}->() // die "connect: $!";
    local $SIG{PIPE} = 'IGNORE';
    my $unsent = $request;
    while (length $unsent) {
        my $count = syswrite($socket, $unsent, 256 * 1024) // die "write: $!";
        substr $unsent, 0, $count, '';
    }
    my $response = '';
    $self->read_more(\$response) while index($response, "\r\n\r\n") < 0;
    my ($head, $body) = split /\r\n\r\n/, $response, 2;
    my ($status) = $head =~ m{\AHTTP/1\.1 ([0-9]{3}) } or die "status line: $head";
    my ($length) = $head =~ /^content-length: ([0-9]+)/mi or die "no length: $head";
    $self->read_more(\$body) while length $body < $length;
    close delete $self->{socket} if $head =~ /^connection: close/mi;
    return ($status, $body);
}

sub read_more {
    my ($self, $buffer) = @_;
    sysread $self->{socket}, $$buffer, 256 * 1024, length $$buffer
        or die "the connection has ended: $!";
}

1;
