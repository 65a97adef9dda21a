use v5.16;
use warnings;
use lib 'lib';
use utf8;

use Differential;
use Encode qw(encode_utf8);
use Served;
use Test::More;

# A Mojolicious application, run by `kirin serve memo.pl` and by Starlet.

my @app = ('apps/mojolicious', 'memo.pl');
my $session =
    Differential->new(kirin => Served->by_kirin(@app), starlet => Served->by_starlet(@app));

my $token = qr/name="csrf_token" type="hidden" value="(\w+)"/;
my %page = (status => 200, random => $token);

$session->step('the first page begins a session', GET => '/', %page, body => qr/visit 1</);
$session->step('which goes on', GET                   => '/', %page, body => qr/visit 2</);
$session->step(
    'a form with unicode', POST => '/memo', content => [text     => encode_utf8 '麒麟 & <b>'],
    status                      => 302, field       => [Location => '/']
);
$session->step(
    'its flash message and the memo', GET => '/', %page,
    body                                  => qr/Noted: \xe9\xba\x92.*<li>\xe9\xba\x92/s
);
$session->step('the flash message is gone', GET => '/', %page, body => qr/visit 4<(?!.*Noted)/s);
$session->step(
    'a form that is refused', POST => '/memo', content => [text => ''],
    random                         => $token, status   => 422
);
$session->step('a page with a token', GET => '/', %page);
$session->step(
    'its token is accepted', POST => '/checked', status => 200, body => qr/^token accepted$/,
    content => sub { my ($self, $name) = @_; [csrf_token => $self->of_last($name, $token)] }
);
$session->step('another is not', POST => '/checked', content => [csrf_token => 'x'], status => 403);

$session->step(
    'an upload of two files', POST => '/upload', status => 200, body => qr/"size":3000000/,
    fields                         => { 'Content-Type' => 'form-data' },
    content                        => [
        note => encode_utf8('zwei Stück'),
        file => [
            undef, encode_utf8('麒麟.txt'), Content => "one\r\n--two\r\n",
            'Content-Type'                        => 'text/plain'
        ],
        file => [
            undef, 'large.bin', Content => "\0\xff\r" x 1_000_000,
            'Content-Type'              => 'application/octet-stream'
        ],
    ]
);
$session->step(
    'an empty file', POST => '/upload', status => 200, body => qr/"size":0/,
    fields                => { 'Content-Type' => 'form-data' },
    content               => [note => '', file => [undef, 'empty', Content => '']]
);

$session->step(
    'JSON', PUT => '/api/memo/7', status => 201,
    content     => '{"text":"\u9e92","list":[1,null,true]}',
    fields      => { 'Content-Type' => 'application/json' },
    field       => [Location => 'http://memo.example/api/memo/7']
);
$session->step('not JSON', PUT                    => '/api/memo/7', content => '{', status => 400);
$session->step('an answer without a body', DELETE => '/api/memo/7', status  => 204);
$session->step(
    'a route that wants digits', PUT => '/api/memo/x', content => '{}', status => 404,
    random                           => qr/ID: \S+/
);

my @targets = (
    '/echo/a%20b/%E9%BA%92?x=1&x=2&y=%FF&z', '/echo/a%2Fb;p=1?a+b=c%2Bd', '/echo//double/',
    '/echo/plus+plus?',
    '/echo/%25', '/echo/x?%E9%BA%92=%E9%BA%9F&empty=&=noname',
);
$session->step("GET $_", GET => $_, status => 200) for @targets;
# Kirin chooses the route of a path after it has resolved the dots. So they do not reach an
# application.
$session->step(
    'a dot', GET     => '/echo/./dot', status => 200, body => qr/dot/,
    refused_by_front => 1
);
$session->step("$_ /echo/x", $_ => '/echo/x', status => 200, content => 'body of it')
    for qw(PATCH POST);
$session->step('OPTIONS', OPTIONS              => '/echo/x', status  => 200);
$session->step('a method of its own', PROPFIND => '/echo/x', status  => 200, content => '<x/>');
$session->step('HEAD', HEAD                    => '/unicode', status => 200);
$session->step('HEAD of a large page', HEAD    => '/large', status   => 200);

$session->step('cookies are set', GET => '/cookies', status => 200, body => qr/"plain":null/);
$session->step(
    'and come back', GET => '/cookies', status => 200,
    body                 => qr/"plain":"one","signed":"two"/
);

$session->step('chunks', GET => '/chunks', status => 200, body => qr/\Achunk 1\n.*chunk 5\n\z/s);
$session->step(
    'pieces with a length', GET => '/unsized', status => 200,
    body                        => qr/\Ahello writer\z/
);
$session->step('a large page', GET => '/large', status => 200, body => qr/line 400000\n\z/);
$session->step(
    'the same compressed', GET => '/large', status => 200,
    fields                     => { 'Accept-Encoding' => 'gzip' },
    field                      => ['Content-Encoding', 'gzip']
);
$session->step('unicode', GET => '/unicode', status => 200);

# `file` is sent by the framework. `/picture.svg` is in ./public, which the front serves itself.
my $file = $session->step('a static file', GET => '/file', status => 200, body => qr/<circle/);
$session->step(
    'the same, not modified', GET => '/file', status => 304,
    fields                        => { 'If-Modified-Since' => $file->header('Last-Modified') }
);
$session->step(
    'the same by its ETag', GET => '/file', status => 304,
    fields                      => { 'If-None-Match' => $file->header('ETag') }
);
$session->step(
    'a range of it', GET => '/file', status => 206, fields => { Range => 'bytes=0-3' },
    body                 => qr/\A<svg\z/
);
$session->step(
    'a range that is not there', GET => '/file', status => 416,
    fields                           => { Range => 'bytes=5000-' }
);
$session->step(
    'a public file', GET => '/picture.svg', status => 200, framework_fields => 0,
    body                 => qr/<circle/
);
$session->step('HEAD of it', HEAD => '/picture.svg', status => 200, framework_fields => 0);

$session->step('a status of its own', GET => '/teapot', status => 418);
$session->step(
    'a redirect', GET => '/moved', status => 301,
    field             => [Location => '/unicode?from=moved#part']
);
$session->step(
    'a page of the stash', GET => '/stash', status => 200,
    field                      => ['Content-Type', 'text/plain;charset=UTF-8']
);
$session->step('an error', GET => '/die', status => 500, random => qr/ID: \S+/);
$session->step(
    'nothing there', GET => '/nothing/at/all', status => 404,
    body                 => qr{<h1>nothing at /nothing/at/all</h1>}
);
$session->step('nothing there, without a body', HEAD => '/nothing', status => 404);

# Mojolicious has no WebSockets over PSGI. The route is not found, and the worker is free again.
$session->step(
    'a WebSocket is declined',
    GET    => '/ws',
    status => 404,
    fields => {
        Upgrade                 => 'websocket', Connection => 'Upgrade',
        'Sec-WebSocket-Key'     => 'dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Version' => 13,
    }
);
$session->step('and the session is still there', GET => '/', %page, body => qr/visit 6</);

done_testing;
