# The smallest PSGI application. BENCH_FRAMING chooses what its response says about its own framing,
# for servers that cannot work it out themselves; which server needs what is written where that
# server is started.
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
