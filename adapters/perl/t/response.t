use v5.16;
use warnings;
use lib 't/lib';
use Cwd ();
use FakeFront;
use Test::More;

my $front = FakeFront->start(<<'PSGI', workers => 1);
sub inner { die "from inner\n" }
my %kind = (
    array => sub { [200, ['Content-Type' => 'text/plain'], ['a', 'b', 'c']] },
    upgraded => sub { my $text = "caf\xe9"; utf8::upgrade($text); [200, ['X-Upgraded' => $text], [$text]] },
    handle => sub { open my $handle, '<', $0 or die $!; [200, [], $handle] },
    memory => sub { open my $handle, '<', \'in memory' or die $!; [200, [], $handle] },
    'writer-length' => sub { sub { my $writer = $_[0]->([200, ['Content-Length' => 3]]); $writer->write('one'); $writer->close } },
    never => sub { sub { } },
    nothing => sub { [204, ['Content-Length' => 3], ['abc']] },
    unchanged => sub { [304, ['ETag' => '"a"'], []] },
    connection => sub { [200, ['Connection' => 'close', 'Keep-Alive' => 'x'], ['kept']] },
    wide => sub { [200, [], ["\x{263a}"]] },
    'wide-header' => sub { [200, ['X-A' => "\x{263a}"], ['a']] },
    newline => sub { [200, ['X-A' => "a\nX-B: b"], ['a']] },
    return => sub { [200, ['X-A' => "a\rb"], ['a']] },
    name => sub { [200, ["X-A: 1\r\nX-B" => 'b'], ['a']] },
    status => sub { ['200 OK', [], ['a']] },
    undef => sub { },
    string => sub { 'hello' },
    die => sub { inner() },
    'die-object' => sub { die bless { code => 42 }, 'Oops' },
    pid => sub { [200, [], [$$]] },
);
sub { my $env = shift; $kind{ substr $env->{PATH_INFO}, 1 }->($env) };
PSGI

sub get {
    my ($kind, $method) = @_;
    $front->request(PATH_INFO => "/$kind", REQUEST_METHOD => $method // 'GET');
}

my %body = (
    array      => 'abc', upgraded => "caf\xe9", memory => 'in memory', 'writer-length' => 'one',
    connection => 'kept',
);
my $pid = get('pid')->{body};
for my $kind (sort keys %body) {
    my $response = get($kind);
    is $response->{status}, 200, "$kind: status";
    is $response->{body}, $body{$kind}, "$kind: body";
}
is get('array')->{header}{'content-length'}, 3, 'an array has a length';
is get('array')->{header}{'content-type'}, 'text/plain', 'headers come through';
is get('upgraded')->{header}{'x-upgraded'}, "caf\xe9", 'an upgraded header is sent as bytes';
ok !exists get('connection')->{header}{$_}, "$_ is not the application's"
    for qw(connection keep-alive);

my $handle = get('handle');
is $handle->{header}{'content-length'}, length $handle->{body}, 'a file has a length';
is get('handle', 'HEAD')->{header}{'content-length'}, length $handle->{body}, 'HEAD has it too';
is get('pid')->{body}, $pid, 'and nothing is left over';

for my $kind (qw(nothing unchanged)) {
    my $response = get($kind);
    ok !exists $response->{header}{'content-length'}
        && !exists $response->{header}{'transfer-encoding'}, "$kind has no framing";
}

my %reason = (
    wide          => 'Wide character in the response body',
    'wide-header' => 'Wide character in the response headers',
    newline       => 'Line end or NUL in the response header X-A',
    return        => 'Line end or NUL in the response header X-A',
    name          => 'Line end or NUL in the response header',
    status        => 'not a number of three digits: 200 OK',
    undef => 'response is no array: undef', string => 'response is no array: hello',
    never => 'has not called its responder', die   => 'from inner', 'die-object' => 'Oops=HASH',
);
for my $kind (sort keys %reason) {
    my $response = get($kind);
    is $response->{status}, 500, "$kind: 500";
    is $response->{body}, "Internal Server Error\n", "$kind: the client does not learn why";
    like $front->log, qr{GET /: .*\Q$reason{$kind}\E}, "$kind: the log does";
}
is get('pid')->{body}, $pid, 'none of it cost the worker its life';

subtest 'the log has the stack' => sub {
    my ($trace) = $front->log =~ /(: from inner\n.*?)^\S+Z kirin:/ms;
    like $trace, qr/main::inner\(|::inner\(/, 'the function that died';
    unlike $trace, qr/Kirin::AppParent/, 'not what is the same each time';
};

subtest 'files with a path are handed back to the front' => sub {
    my $files = FakeFront->start(<<'PSGI', sendfile => '/usr');
use Cwd; use Plack::Util; use Plack::App::File;
package Named { sub new { my ($class, $path) = @_; bless { path => $path }, $class } sub path { $_[0]{path} } sub getline { delete $_[0]{path} && 'content' } sub close { print STDERR "closed\n" } }
package main;
my $self = Cwd::abs_path('lib/Kirin/Worker/File.pm');
my $file = Plack::App::File->new(file => 'lib/Kirin/Worker/File.pm')->to_app;
my %kind = (
    file => $file,
    delayed => sub { my $env = shift; sub { $_[0]->($file->($env)) } },
    below => sub { [200, [], Named->new('/usr/bin/env')] },
    outside => sub { [200, [], Named->new($self)] },
);
sub { my $env = shift; $kind{ substr $env->{PATH_INFO}, 1 }->($env) };
PSGI
    my $path = Cwd::abs_path('lib/Kirin/Worker/File.pm');
    my $state = join ' ', (stat $path)[0, 1, 7, 9, 10];
    for my $request (['/file'], ['/delayed'], ['/file', REQUEST_METHOD => 'HEAD']) {
        my $response = $files->request(PATH_INFO => @$request);
        is $response->{header}{'kirin-file'}, "$state $path",
            "@$request: what the handle is, and its path";
        is $response->{header}{'content-length'}, 0, 'no body from here';
        is $response->{header}{'content-type'}, 'text/x-script.perl-module; charset=utf-8',
            'the application\'s own fields';
    }
    for my $request ([REQUEST_METHOD => 'POST'], [KIRIN_SENDFILE => 0]) {
        my $response = $files->request(PATH_INFO => '/file', @$request);
        like $response->{body}, qr/^package Kirin::Worker::File/, "@$request: the content";
        ok !exists $response->{header}{'kirin-file'}, 'and no path';
    }
    like $files->request(PATH_INFO => '/below')->{header}{'kirin-file'}, qr{ /usr/bin/env\z},
        'an object below a root';
    like $files->log, qr/^closed$/m, 'is closed';
    is $files->request(PATH_INFO => '/outside')->{body}, 'content',
        'an object elsewhere sends its content';
};

done_testing;
