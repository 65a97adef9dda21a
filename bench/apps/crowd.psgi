# Answers the crowd with a small body. /large is for slow readers: its body is larger than the
# buffer of a socket.
use v5.16;
use warnings;

my $large = 'x' x (256 * 1024);

sub {
    my $body = shift->{PATH_INFO} eq '/large' ? $large : 'Hello World';
    [200, ['Content-Type', 'text/plain', 'Content-Length', length $body], [$body]];
};
