# The smallest PSGI application. BENCH_FRAMING chooses the framing fields of its response, because
# some servers do not add them. The code that starts such a server sets the variable.
use v5.16;
use warnings;

my %app = (
    plain  => sub { [200, ['Content-Type', 'text/plain'], ['Hello World']] },
    length => sub { [200, ['Content-Type', 'text/plain', 'Content-Length', 11], ['Hello World']] },
    close  => sub {
        [
            200, ['Content-Type', 'text/plain', 'Content-Length', 11, 'Connection', 'close'],
            ['Hello World']
        ];
    },
);

$app{ $ENV{BENCH_FRAMING} // 'plain' };
