use v5.16;
use warnings;
use lib 't/lib';
use FakeFront;
use Kirin::Ring;
use RingTool;
use Test::More;

# Sends the same requests to a worker that uses the ring and to one that does not. The bytes that
# come back must be the same, and so must be the lines of the log.

plan skip_all => 'the compiled part is not there' if !Kirin::Ring::is_available();
my $relay = RingTool->build('relay') or plan skip_all => 'the relay cannot be compiled';

my $APP = <<'PSGI';
use POSIX ();
package Guard { sub new { bless [$_[1]], $_[0] } sub DESTROY { print STDERR "gone: $_[0][0]\n" } }
package main;
my $long = join '', map { "line $_\n" } 1 .. 20_000;
my %kind = (
    plain => sub { [200, ['Content-Type' => 'text/plain', 'X-A' => 5], ['a', undef, 'b']] },
    numbers => sub { [200, ['X-A' => 1.5], [1, 2, 3]] },
    'content-length' => sub { [200, ['Content-Length' => 100], ['short']] },
    bytes => sub { [200, [], [join '', map chr, 0 .. 255]] },
    upgraded => sub { my $text = "caf\xe9"; utf8::upgrade($text); [200, ['X-A' => $text], [$text]] },
    wide => sub { [200, [], ["\x{263a}"]] },
    'wide header' => sub { [200, ['X-A' => "\x{263a}"], ['a']] },
    'line end' => sub { [200, ['X-A' => "a\r\nX-B: b"], ['a']] },
    control => sub { [200, ['X-A' => "a\x01b\x7f"], ['a']] },
    name => sub { [200, ['X A' => 'a', 'X-B' => 'b'], ['a']] },
    framing => sub { [200, ['Connection' => 'close', 'Keep-Alive' => 5, 'Kirin-Cleanup' => 1, 'Kirin-File' => 'x'], ['a']] },
    chunked => sub { [200, ['Transfer-Encoding' => 'chunked'], ["1\r\na\r\n0\r\n\r\n"]] },
    nothing => sub { [204, ['Content-Length' => 3], ['abc']] },
    unchanged => sub { [304, ['ETag' => '"a"', 'Content-Length' => 3], []] },
    status => sub { ['200 OK', [], ['a']] },
    early => sub { [103, [], ['a']] },
    nineteen => sub { [199, [], ['a']] },
    long => sub { [200, [], [$long]] },
    'almost long' => sub { [200, [], [substr $long, 0, 48 * 1024 - 100]] },
    'a little long' => sub { [200, [], [substr $long, 0, 48 * 1024 - 20]] },
    streamed => sub { sub { my $writer = $_[0]->([200, []]); $writer->write($_) for 'a' .. 'e'; $writer->close } },
    delayed => sub { sub { $_[0]->([200, ['X-A' => 'b'], ['later']]) } },
    'delayed and long' => sub { sub { $_[0]->([200, [], [$long]]) } },
    handle => sub { open my $handle, '<', \'in memory' or die; [200, [], $handle] },
    object => sub { [200, [], Lines->new('a', '', 'b')] },
    informational => sub { $_[0]{'psgix.informational'}->(103, [Link => '</a>']); [200, [], ['after']] },
    'informational, long' => sub { $_[0]{'psgix.informational'}->(103, [Link => '</a>']); [200, [], [$long]] },
    'informational, streamed' => sub {
        my $env = shift;
        sub { $env->{'psgix.informational'}->(103, [Link => '</a>']); my $w = $_[0]->([200, []]); $w->write('a'); $w->close }
    },
    'informational, dies' => sub { $_[0]{'psgix.informational'}->(103, [Link => '</a>']); die "after 103\n" },
    'informational in a cleanup' => sub {
        push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { eval { $_[0]{'psgix.informational'}->(103, []) } } if $ENV{KIRIN_TEST_RING};
        push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { } if !$ENV{KIRIN_TEST_RING};
        [200, [], ['answered']]
    },
    cleanup => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { print STDERR "cleaning up\n" }; [200, [], ['a']] },
    'cleanup, long' => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { print STDERR "cleaning up\n" }; [200, [], [$long]] },
    'cleanup that dies' => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { die "in a cleanup\n" }; [200, [], ['a']] },
    dies => sub { die "died\n" },
    'dies in a sub' => sub { inner(@_) },
    'dies, delayed' => sub { sub { die "delayed\n" } },
    never => sub { sub { } },
    undef => sub { undef },
    string => sub { 'hello' },
    blessed => sub { bless [200, [], ['a']], 'Some' },
    'blessed body' => sub { [200, [], bless ['a'], 'Some'] },
    tied => sub { tie my @body, 'Tie::StdArray'; @body = ('a', 'b'); [200, [], \@body] },
    child => sub { my $pid = fork // die; POSIX::_exit(0) if !$pid; waitpid $pid, 0; [200, [], ["child $?"]] },
    'child that dies' => sub { my $pid = fork // die; die "in a child\n" if !$pid; waitpid $pid, 0; [200, [], ["child $?"]] },
    'child with exit' => sub { my $pid = fork // die; exit 3 if !$pid; waitpid $pid, 0; [200, [], ["child $?"]] },
    object => sub { $_[0]{object} = Guard->new('object'); [200, [], ['a']] },
    site => sub { require Kirin::Store; [200, [], [$Kirin::Store::Site // 'none']] },
    changed => sub { my $env = shift; $env->{REQUEST_METHOD} = 'HEAD'; [200, [], ['a body']] },
    environment => sub {
        my $env = shift;
        [200, [], [map { "$_=" . (ref $env->{$_} ? ref $env->{$_} : $env->{$_} // 'undef') . "\n" } sort keys %$env]]
    },
    body => sub { my $n = $_[0]{'psgi.input'}->read(my $body, 100_000); [200, [], ["$n: $body"]] },
    harakiri => sub { $_[0]{'psgix.harakiri.commit'} = 1; [200, [], ['the last']] },
    exit => sub { exit 0 },
    'exit later' => sub { sub { my $writer = $_[0]->([200, []]); $writer->write('a'); exit 0 } },
    'dies late' => sub { sub { my $writer = $_[0]->([200, []]); $writer->write('a'); die "late\n" } },
    own => sub { $_[0]{'psgix.io'} = \*STDOUT; sub { } },
);
sub inner { die "inner\n" }
use Tie::Array;
package Lines { sub new { my $class = shift; bless [@_], $class } sub getline { shift @{ $_[0] } } sub close { } }
package main;
sub { my $env = shift; $kind{ $env->{QUERY_STRING} }->($env) };
PSGI

my @kinds =
    grep { !/\A(?:changed|exit|harakiri|dies late|own)/ } $APP =~ /^    '?([a-z, -]+?)'? => sub/mg;

sub start {
    my $way = shift;
    local $ENV{KIRIN_TEST_RING} = $way eq 'ring' ? $relay : '';
    local $ENV{KIRIN_RING} = $way eq 'ring' ? 1 : 0;
    my $front = FakeFront->start($APP);
    $front->connect;
    return $front;
}

my %front = map { $_ => start($_) } qw(socket ring);
like $front{ring}->{greeting}, qr/ speaks=2 /, 'a worker that offers the ring';
unlike $front{socket}->{greeting}, qr/speaks/, 'one that must not';

# Returns what is the same in all processes.
sub normal {
    my $text = shift;
    $text =~ s/^\S+Z (?=kirin: )//mg;
    $text =~ s/worker [0-9]+/worker PID/g;
    $text =~ s{Kirin/Worker(?:/RingLoop)?\.pm line [0-9]+}{Kirin/Worker.pm}g;
    $text =~ s/(?:0x[0-9a-f]+|\S+app\.psgi)/X/g;
    return $text;
}

# Asks both ways. $again is for requests after which a worker leaves.
sub compare {
    my ($name, %request) = @_;
    my $read_as = delete $request{read_as} // $request{REQUEST_METHOD};
    my %seen;
    for my $way (qw(socket ring)) {
        my $front = $front{$way};
        my $logged = length $front->log;
        my $response = eval {
            $front->send(%request);
            my @responses;
            do { push @responses, $front->response($read_as) }
                until $responses[-1]{cut} || $responses[-1]{status} >= 200;
            # The line end after a cleanup.
            push @responses, $front->read_bytes(1) if $responses[-1]{header}{'kirin-cleanup'};
            \@responses;
        } // $@;
        # The next response comes when everything about this one has been logged.
        if (ref $response && !grep { ref && $_->{cut} } @$response) {
            $front->request(QUERY_STRING => 'plain', body => '');
        }
        else {
            $front->connect;
        }
        $seen{$way} = { response => $response, log => normal(substr $front->log, $logged) };
    }
    is_deeply $seen{ring}, $seen{socket}, $name or diag explain \%seen;
}

for my $kind (sort @kinds) {
    compare($kind, QUERY_STRING        => $kind);
    compare("HEAD $kind", QUERY_STRING => $kind, REQUEST_METHOD => 'HEAD');
}
compare('a method that the application changes', QUERY_STRING => 'changed', read_as => 'HEAD');
compare('a body', QUERY_STRING         => 'body', REQUEST_METHOD => 'POST', body => 'abc');
compare('a body of NULs', QUERY_STRING => 'body', REQUEST_METHOD => 'POST', body => "\0" x 300);
compare('a long body', QUERY_STRING    => 'body', REQUEST_METHOD => 'POST', body => 'x' x 60_000);
compare('values', QUERY_STRING => 'environment', HTTP_A => '', HTTP_B => "\xff", HTTP_C => '0');
compare('https', QUERY_STRING  => 'environment', HTTPS  => 'on');
compare('a site', QUERY_STRING => 'site', KIRIN_SITE    => 'shop');
compare('no site after it', QUERY_STRING => 'site');
compare(
    'a parsed form', QUERY_STRING => 'environment', REQUEST_METHOD => 'POST', body => 'a=b',
    'kirin.form'                  => "3\x1fa\x1fb"
);
compare('an upgrade that is not used', QUERY_STRING => 'plain', HTTP_UPGRADE => 'x');

# After these the worker takes another connection, or another worker does.
for my $kind ('dies late', 'own', 'exit', 'exit later', 'harakiri') {
    my %seen;
    for my $way (qw(socket ring)) {
        my $front = $front{$way};
        $front->send(QUERY_STRING => $kind);
        my $response = eval { $front->response } // $@;
        local $ENV{KIRIN_TEST_RING} = $way eq 'ring' ? $relay : '';
        $front->connect;
        my $next = $front->request(QUERY_STRING => 'plain');
        $seen{$way} = [$response, $next];
    }
    is_deeply $seen{ring}, $seen{socket}, $kind or diag explain \%seen;
}

done_testing;
