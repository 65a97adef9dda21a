# What nearly every handler begins with: the request's parameters, through Plack::Request. The
# answer contains all of them, so that a server which parses wrongly (or not at all) is seen.
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
