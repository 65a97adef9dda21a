use v5.16;
use warnings;
use lib 't/lib';
use IO::Socket::INET;
use LeasedPort qw(lease_port);
use NeedsKirin;
use Plackup;
use Test::More;

# Responses that PSGI does not allow, or barely allows. No client may wait forever, and no worker
# may be lost: the same worker answers the next request. If Starlet answers with a status, Kirin
# uses the same one, unless the table says otherwise.

my $PSGI = <<'PSGI';
package Mute { sub new { bless [], shift } }
package main;
my %kind = (
    'undef in the body'        => sub { [200, [], [undef]] },
    'undef among others'       => sub { [200, [], ['a', undef, 'b']] },
    'an empty array'           => sub { [200, [], []] },
    'undef as a header value'  => sub { [200, ['X-A' => undef], ['a']] },
    'an odd list of headers'   => sub { [200, ['X-A'], ['a']] },
    'a header without a name'  => sub { [200, ['' => 'x', 'X-A' => 'a'], ['a']] },
    'a name with a space'      => sub { [200, ['X Y' => 'x', 'X-A' => 'a'], ['a']] },
    'a name with a colon'      => sub { [200, ['X:Y' => 'x'], ['a']] },
    'a control character'      => sub { [200, ['X-A' => "a\x01b"], ['a']] },
    'headers in a hash'        => sub { [200, {}, ['a']] },
    'a body that is missing'   => sub { [200, []] },
    'a body that is a hash'    => sub { [200, [], {}] },
    'a body that cannot be read' => sub { [200, [], Mute->new] },
    'a body of references'     => sub { [200, [], [[], {}]] },
    'no status'                => sub { [undef, [], ['a']] },
    'status 600'               => sub { [600, [], ['a']] },
    'an empty response'        => sub { [] },
    'nothing'                  => sub { },
    'wide characters in a file' => sub { [200, [], file_with("\x{263a}")] },
    'a file that is too short' => sub { [200, ['Content-Length' => 3], file_with('')] },
    'a writer given undef'     => sub { sub { my $w = $_[0]->([200, []]); $w->write(undef); $w->write('a'); $w->close } },
    'a writer that is left'    => sub { sub { my $w = $_[0]->([200, []]); $w->write('a'); return } },
    'undef for later'          => sub { sub { $_[0]->([200, [], [undef]]) } },
    'warnings that die'        => sub { $SIG{__WARN__} = sub { die @_ }; [200, ['X-A' => undef], [undef]] },
);
sub file_with {
    open my $file, '+>:encoding(UTF-8)', undef or die $!;
    print $file $_[0];
    seek $file, 0, 0;
    return $file;
}
my $runs = 0;
sub {
    my $env = shift;
    return [200, [], [$$]] if $env->{PATH_INFO} eq '/pid';
    return [200, [], [$runs]] if $env->{PATH_INFO} eq '/runs';
    $runs++;
    my $code = $kind{ $env->{PATH_INFO} =~ s{\A/}{}r =~ tr/_/ /r };
    return $code->($env);
}
PSGI

# Status and body by kind of response.
my %expected = (
    'undef in the body'         => [200, ''], 'undef among others' => [200, 'ab'],
    'an empty array'            => [200, ''],
    'undef as a header value'   => [200, 'a'], 'an odd list of headers' => [200, 'a'],
    'a header without a name'   => [200, 'a'], 'a name with a space'    => [200, 'a'],
    'a name with a colon'       => [200, 'a'],
    'a control character'       => [200, 'a'],
    'headers in a hash'         => [500], 'a body that is missing'     => [200, ''],
    'a body that is a hash'     => [500], 'a body that cannot be read' => [500],
    'no status'                 => [500],
    'status 600'                => [600, 'a'], 'an empty response'   => [500], 'nothing' => [500],
    'wide characters in a file' => [500], 'a file that is too short' => [500],
    'a writer given undef'      => [200, 'a'],
    'a writer that is left'     => [200, 'a'],
    'undef for later'           => [200, ''], 'warnings that die' => [200, ''],
);

my $server = Plackup->start($PSGI, '--workers', 1);
my $pid = $server->get('/pid');
my $runs = 0;
for my $kind (sort keys %expected) {
    my ($status, $body) = @{ $expected{$kind} };
    my ($head, $got) = $server->receive($server->send('/' . $kind =~ tr/ /_/r));
    my ($line) = ($head // '') =~ m{\AHTTP/1\.1 ([0-9]{3})};
    is $line, $status, "$kind: status";
    $got = $1
        if ($head // '') =~ /^transfer-encoding: chunked/mi
        && $got =~ /\A[0-9a-f]+\r\n(.*?)\r\n0\r\n/s;
    $got = '' if ($got // '') eq "0\r\n\r\n";
    is $got, $body, "$kind: body" if defined $body;
    my $now = $server->get("/pid");
    is $now, $pid, "$kind: the worker goes on";
    is $server->get('/runs'), ++$runs, "$kind: the application runs once";
    $pid = $now;
}
# Kirin answers with the same status as Starlet if Starlet answers completely.
subtest 'Starlet answers no more of them' => sub {
    eval { require Plack::Handler::Starlet; 1 } or plan skip_all => 'no Starlet';
    my $port = lease_port();
    my $app = "$server->{directory}/app.psgi";
    my $pid = fork // die $!;
    if (!$pid) {
        open STDERR, '>', '/dev/null';
        exec $^X, '-S', 'plackup', '-s', 'Starlet', '--max-workers', 1, '-E', 'deployment',
            '--host', '127.0.0.1', '-p', $port, $app;
    }
    my $connect = sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) };
    $server->wait_until('Starlet serves', $connect);
    for my $kind (sort keys %expected) {
        my ($head, $body) = $server->receive($server->send('/' . $kind =~ tr/ /_/r, $connect->()));
        my ($status) = ($head // '') =~ m{\AHTTP/1\.1 ([0-9]{3}) } or next;
        my $is_whole = ($head =~ /^Content-Length: ([0-9]+)/mi && length $body == $1)
            || $body =~ /(?:\A|\n)0\r\n\r\n\z/;
        next if !$is_whole;
        is $expected{$kind}[0], $status, $kind;
    }
    kill TERM => $pid;
    waitpid $pid, 0;
};
like $server->log, qr/header 'X\?Y' is left out/, 'the log says what is left out';

done_testing;
