# Something small for the crowd, and at /large something that does not fit into a socket's buffer
# for slow readers.
use v5.16;
use warnings;

my $large = 'x' x (256 * 1024);

sub {
    my $body = shift->{PATH_INFO} eq '/large' ? $large : 'Hello World';
    [200, ['Content-Type', 'text/plain', 'Content-Length', length $body], [$body]];
};
