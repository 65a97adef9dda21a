use v5.16;
use warnings;
use lib 'lib';
use utf8;

use Differential;
use Encode qw(encode_utf8);
use File::Temp ();
use Served;
use Test::More;

# A Dancer2 application, run by `plackup -s Kirin bin/app.psgi` and by Starlet.

my @app = ('apps/dancer2', 'bin/app.psgi');
my @sessions = map { File::Temp->newdir } 1 .. 2;
my $session = Differential->new(
    kirin   => Served->by_plackup(@app, NOTES_SESSIONS => "$sessions[0]"),
    starlet => Served->by_starlet(@app, NOTES_SESSIONS => "$sessions[1]"),
);

$session->step('the first page begins a session', GET => '/', status => 200, body => qr/visit 1</);
$session->step('which goes on', GET                   => '/', status => 200, body => qr/visit 2</);
$session->step(
    'a form with unicode', POST => '/note', content => [text     => encode_utf8 '麒麟 & <b>'],
    status                      => 302, field       => [Location => '/']
);
$session->step(
    'its note is there', GET => '/', status => 200,
    body                     => qr/<li>\xe9\xba\x92\xe9\xba\x9f &amp; &lt;b&gt;/
);
$session->step('a form that is refused', POST   => '/note', content => [text => ''], status => 422);
$session->step('a session with another id', GET => '/new-id', status => 200);
$session->step('has the same content', GET      => '/', status => 200, body => qr/visit 4<.*<li>/s);
$session->step('the session ends', GET          => '/logout', status => 302);
$session->step('and another begins', GET => '/', status => 200, body => qr/visit 1<(?!.*<li>)/s);

$session->step(
    'an upload of two files', POST => '/upload', status => 200, body => qr/^3000000 /m,
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

my @targets = (
    '/echo/a%20b/%E9%BA%92?x=1&x=2&y=%C3%BC&z', '/echo/a%2Fb;p=1?a+b=c%2Bd;e=f', '/echo//double/',
    '/echo/plus+plus?',
    '/echo/%25', '/echo/x?%E9%BA%92=%E9%BA%9F&empty=&=noname&%zz=%',
);
my $json = qr/\A\{.*\}\z/s;
$session->step("GET $_", GET => $_, status => 200, body => $json) for @targets;
$session->step(
    "$_ with a body", $_ => '/echo/x', status => 200, content => 'body of it',
    body                 => qr/"body of it"/
) for qw(POST PUT PATCH);
$session->step(
    'a form', POST => '/echo/x?q=1', status => 200,
    content        => 'a=1&a=2&b=%E9%BA%92&c=+&d',
    fields         => { 'Content-Type' => 'application/x-www-form-urlencoded' }
);
$session->step('OPTIONS', OPTIONS                    => '/echo/x', status  => 200);
$session->step('HEAD', HEAD                          => '/unicode', status => 200);
$session->step('an answer without a body', DELETE    => '/note/7', status  => 204);
$session->step('a route that wants a number', DELETE => '/note/x', status  => 404);

$session->step('cookies are set', GET => '/cookies', status => 200, body => qr/none/);
$session->step('and come back', GET   => '/cookies', status => 200, body => qr/before: caf/);

$session->step(
    'a streamed response', GET => '/streamed', status => 200,
    body                       => qr/\Apiece 1\n.*piece 50\n\z/s
);
$session->step('a delayed one', GET => '/delayed', status => 200, body => qr/\Adelayed\z/);
# The connection ends, because Starlet still sends the end of a body.
$session->step(
    'HEAD of a streamed one', HEAD => '/streamed', status => 200,
    fields                         => { Connection => 'close' }
);
$session->step('a file that is sent', GET   => '/sent', status     => 200, body => qr/margin/);
$session->step('a scalar that is sent', GET => '/download', status => 200);
$session->step('a large page', GET => '/large', status   => 200, body => qr/line 300000\n\z/);
$session->step('unicode', GET      => '/unicode', status => 200);

my $file =
    $session->step('a static file', GET => '/css/notes.css', status => 200, body => qr/margin/);
$session->step(
    'the same, not modified', GET => '/css/notes.css', status => 304,
    fields                        => { 'If-Modified-Since' => $file->header('Last-Modified') }
);
$session->step('HEAD of it', HEAD       => '/css/notes.css', status => 200);
$session->step('outside of public', GET => '/../config.yml', status => 400, refused_by_front => 1);
$session->step(
    'outside of public, escaped', GET => '/css/%2e%2e/%2e%2e/config.yml',
    status                            => 400, refused_by_front => 1
);

$session->step('halt', GET          => '/halt', status      => 403, body => qr/\Ahalted\z/);
$session->step('pass', GET          => '/pass/on', status   => 200, body => qr/passed on/);
$session->step('forward', GET       => '/forwarded', status => 200, body => qr/na\xc3\xafve/);
$session->step('a redirect', GET    => '/moved', status     => 301);
$session->step('an error', GET      => '/die', status       => 500);
$session->step('nothing there', GET => '/nothing', status   => 404, body => qr/nothing here/);
$session->step('nothing there, without a body', HEAD => '/nothing', status => 404);
$session->step('a method without a route', PUT       => '/note', content   => '', status => 404);

done_testing;
