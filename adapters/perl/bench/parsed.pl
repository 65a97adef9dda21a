use v5.16;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../t/lib";

# Measures the CPU time of front and worker per request, with the front's parsing and without
# (KIRIN_PARSED=0), for applications that use it and for one that does not. The figure is the least
# of some interleaved rounds, so that other processes on the machine matter little.
#
#     cargo build --release -p kirin && perl adapters/perl/bench/parsed.pl

BEGIN { chdir "$FindBin::Bin/.." or die $! }

use List::Util qw(min);
use Plackup;
use RawClient;

use constant REQUESTS => 4_000;
use constant ROUNDS   => 7;

my $APP = <<'PSGI';
use Plack::Request;
my %answer = (
    '/looks-not' => sub { '' },
    '/params'    => sub { $_[0]->parameters->{e} },
    '/cookies'   => sub { $_[0]->cookies->{name} },
);
sub {
    my $env = shift;
    my $body = $env->{PATH_INFO} eq '/pid' ? $$ : $answer{ $env->{PATH_INFO} }->(Plack::Request->new($env));
    return [200, ['Content-Type' => 'text/plain'], [$body // '']];
};
PSGI

my $query = 'a=1&b=two&c=three%20words&d=4&e=%E9%BA%92%E9%BA%9F';
my $cookie =
    "Cookie: session=abcdef0123456789; theme=dark; _ga=GA1.2.1234567.76543; name=%E9%BA%92\r\n";
my $form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " . length $query;
my @cases = (
    ['does not look: nothing to parse', "GET /looks-not HTTP/1.1\r\nHost: x\r\n\r\n"],
    [
        'does not look: query and cookies',
        "GET /looks-not?$query HTTP/1.1\r\nHost: x\r\n$cookie\r\n"
    ],
    ['does not look: form', "POST /looks-not HTTP/1.1\r\nHost: x\r\n$form\r\n\r\n$query"],
    ['parameters: none', "GET /params HTTP/1.1\r\nHost: x\r\n\r\n"],
    ['parameters: query of 5', "GET /params?$query HTTP/1.1\r\nHost: x\r\n\r\n"],
    ['parameters: form of 5', "POST /params HTTP/1.1\r\nHost: x\r\n$form\r\n\r\n$query"],
    ['cookies: 4', "GET /cookies HTTP/1.1\r\nHost: x\r\n$cookie\r\n"],
);

my %side;
for my $parsed (1, 0) {
    local $ENV{KIRIN_PARSED} = $parsed;
    my $server = Plackup->start($APP, '--workers', 1);
    my $client = RawClient->new(sub { $server->connect });
    my (undef, $worker) = $client->ask("GET /pid HTTP/1.1\r\nHost: x\r\n\r\n");
    $side{$parsed} = { server => $server, client => $client, pids => [$server->{pid}, $worker] };
}

my %best;
for my $round (0 .. ROUNDS) {
    for my $case (@cases) {
        my ($name, $request) = @$case;
        for my $parsed (1, 0) {
            my $side = $side{$parsed};
            my $begin = cpu($side);
            $side->{client}->ask($request) for 1 .. REQUESTS;
            my $micros = (cpu($side) - $begin) / REQUESTS / 1_000;
            # The first round warms up.
            $best{$name}[$parsed] = min $micros, $best{$name}[$parsed] // () if $round;
        }
    }
}

printf "| %-36s | with | without | |\n|---|--:|--:|--:|\n",
    'CPU of front and worker, µs per request';
for my $case (@cases) {
    my ($without, $with) = @{ $best{ $case->[0] } };
    printf "| %-36s | %.1f | %.1f | %+.1f |\n", $case->[0], $with, $without, $with - $without;
}

# Returns the nanoseconds that the threads of both have run.
sub cpu {
    my $side = shift;
    my $sum = 0;
    for my $file (map { glob "/proc/$_/task/*/schedstat" } @{ $side->{pids} }) {
        open my $handle, '<', $file or next;
        $sum += (split ' ', readline $handle)[0];
    }
    return $sum;
}
