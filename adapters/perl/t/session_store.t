use v5.16;
use warnings;
use lib 't/lib';
use Browser;
use Kirin::Store;
use Memcached;
use NeedsKirin;
use Plack::Middleware::Session::Kirin;
use Plackup;
use Test::More;

my $server = Memcached->start;
local $ENV{KIRIN_STORE} = $server->address;
my $store = Kirin::Store->new;
my $app = Plack::Middleware::Session::Kirin->wrap(
    sub {
        my $env = shift;
        $env->{'psgix.session.options'}{expire} = 1 if $env->{PATH_INFO} eq '/out';
        return [
            200,
            [],
            [
                  $env->{PATH_INFO} eq '/see'
                ? $env->{'psgix.session'}{n} // 'none'
                : ++$env->{'psgix.session'}{n}
            ]
        ];
    },
    keep_empty => 0, ttl => 100,
);

subtest 'by default sessions are in the store' => sub {
    my $browser = Browser->new($app);
    is join(' ', map { $browser->get('/') } 1 .. 3), '1 2 3', 'and come back';
    my $id = $browser->{cookie}{simple_session};
    is_deeply $store->get($id), { n => 3 }, 'under their ids, as JSON';
    $browser->get('/out');
    is $store->get($id), undef, 'until they end';
};

subtest 'a store that is away costs nobody their session' => sub {
    my $browser = Browser->new($app);
    is $browser->get('/'), 1, 'a session';
    my $id = $browser->{cookie}{simple_session};
    my $content = $store->get($id);
    $server->stop;
    is $browser->get('/see'), 'none', 'it is empty while the store is away';
    is_deeply $browser->{sent}, [], 'but the client keeps its cookie';
    like ${ $browser->{log} }, qr/session is not read: unix:/, 'and the log has a line';
    is $browser->get('/'), 1, 'a change';
    is_deeply $browser->{sent}, [], 'is lost, without a new cookie';
    my $new = Browser->new($app);
    is $new->get('/'), 1, 'a new visitor is served too';
    is_deeply $new->{sent}, [], 'without a cookie for what could not be stored';
    $server->begin;
    $store->set($id, $content);
    is $browser->get('/see'), 1, 'with the store the session is back';
};

subtest 'behind Kirin, in all workers' => sub {
    my $server = Plackup->start('
        use Plack::Middleware::Session::Kirin;
        Plack::Middleware::Session::Kirin->wrap(
            sub { [200, [], [($_[0]{"psgix.session"}{n}++ // 0)]] }, keep_empty => 0);',
        '--workers', 3);
    my ($head, $body) = $server->receive($server->send('/'));
    my ($cookie) = $head =~ /^Set-Cookie: (simple_session=[0-9a-f]+)/mi;
    ok $cookie, 'a cookie';
    for my $expected (1 .. 12) {
        my $socket = $server->connect;
        syswrite $socket,
            "GET / HTTP/1.1\r\nHost: x\r\nCookie: $cookie\r\nConnection: close\r\n\r\n";
        ($head, $body) = $server->receive($socket);
        is $body, $expected, 'request ' . ($expected + 1);
    }
    unlike $head, qr/Set-Cookie/i, 'the cookie is sent once';
};

done_testing;
