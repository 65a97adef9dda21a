# Reads the parameters of the request through Plack::Request, as nearly every application does. The
# response contains all of them. It is wrong if the server passes the request on wrongly.
use v5.16;
use warnings;
use Plack::Request;

sub body {
    my $parameters = Plack::Request->new(shift)->parameters;
    return join ',', map { "$_=$parameters->{$_}" } qw(a b c d e);
}

my %app = (
    plain  => sub { [200, ['Content-Type', 'text/plain'], [body(@_)]] },
    length => sub {
        my $body = body(@_);
        [200, ['Content-Type', 'text/plain', 'Content-Length', length $body], [$body]];
    },
    close => sub {
        my $body = body(@_);
        [
            200,
            ['Content-Type', 'text/plain', 'Content-Length', length $body, 'Connection', 'close'],
            [$body]
        ];
    },
);

$app{ $ENV{BENCH_FRAMING} // 'plain' };
