use v5.16;
use warnings;
use lib 'lib';
use utf8;

use Differential;
use Encode qw(encode_utf8);
use File::Temp ();
use Served;
use Test::More;

# A Catalyst application, run by `kirin serve journal.psgi` and by Starlet.

my @app = ('apps/catalyst', 'journal.psgi');
my @sessions = map { File::Temp->newdir } 1 .. 2;
my $session = Differential->new(
    kirin   => Served->by_kirin(@app, JOURNAL_SESSIONS => "$sessions[0]"),
    starlet => Served->by_starlet(@app, JOURNAL_SESSIONS => "$sessions[1]"),
);

$session->step('the first page begins a session', GET => '/', status => 200, body => qr/visit 1</);
$session->step('which goes on', GET                   => '/', status => 200, body => qr/visit 2</);
$session->step(
    'a form with unicode', POST => '/entry', content => [text     => encode_utf8 '麒麟 & <b>'],
    status                      => 302, field        => [Location => 'http://memo.example/']
);
$session->step(
    'its flash message and the entry', GET => '/', status => 200,
    body => qr/Written: \xe9\xba\x92.*<li>\xe9\xba\x92\xe9\xba\x9f &amp; &lt;b&gt;/s
);
$session->step(
    'the flash message is gone', GET => '/', status => 200,
    body                             => qr/\A(?!.*Written).*visit 4</s
);
$session->step('a form that is refused', POST => '/entry', content => [text => ''], status => 422);
$session->step('GET of what only POST has', GET => '/entry', status  => 404);
$session->step('a session with another id', GET => '/new_id', status => 200);
$session->step('has the same content', GET      => '/', status => 200, body => qr/visit 5<.*<li>/s);
$session->step('the session ends', GET          => '/logout', status => 303);
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
    '/echo/%25?key+word', '/echo/x?%E9%BA%92=%E9%BA%9F&empty=&=noname&%zz=%',
);
$session->step("GET $_", GET            => $_, status => 200, body => qr/\A\{.*\}\z/s) for @targets;
$session->step('what is not UTF-8', GET => '/echo/x?y=%FF', status => 400);
$session->step(
    "$_ with a body", $_ => '/echo/x', status => 200, content => 'body of it',
    body                 => qr/"body of it"/,
    fields               => { 'Content-Type' => 'application/octet-stream' }
) for qw(POST PUT PATCH);
$session->step(
    'a form', POST => '/echo/x?q=1', status => 200, body => qr/"a":\["1","2"\]/,
    content        => 'a=1&a=2&b=%E9%BA%92&c=+&d',
    fields         => { 'Content-Type' => 'application/x-www-form-urlencoded' }
);
$session->step(
    'JSON', POST => '/json', status => 200, content => '{"list":[1,null,true]}',
    fields       => { 'Content-Type' => 'application/json' }, body => qr/"list":\[1,null,true\]/
);
$session->step('OPTIONS', OPTIONS => '/echo/x', status  => 200);
$session->step('HEAD', HEAD       => '/unicode', status => 200);
# The connection ends, because Starlet still sends the end of a body.
$session->step(
    'HEAD of a streamed page', HEAD => '/streamed', status => 200,
    fields                          => { Connection => 'close' }
);
$session->step(
    'a chain of actions', GET => '/book/kirin/page/7', status => 200,
    body                      => qr/\Apage 7 of kirin\z/
);

$session->step('cookies are set', GET => '/cookies', status => 200, body => qr/none/);
$session->step('and come back', GET   => '/cookies', status => 200, body => qr/before: one & two/);

$session->step(
    'a streamed page', GET => '/streamed', status => 200,
    body                   => qr/\Apiece 1 \xe9.*piece 50 [^\n]+\n\z/s
);
$session->step('a writer', GET => '/writer', status => 200, body => qr/\Apiece 1\n.*piece 3\n\z/s);
$session->step('a file handle', GET    => '/handle', status    => 200, body => qr/margin/);
$session->step('a temporary file', GET => '/temporary', status => 200, body => qr/line 300000\n\z/);
$session->step('a PSGI response inside', GET => '/psgi', status => 202, body => qr/\Ainner\z/);
$session->step('a large page', GET => '/large', status   => 200, body => qr/line 300000\n\z/);
$session->step('unicode', GET      => '/unicode', status => 200);
$session->step('no content', GET   => '/nothing', status => 204);
$session->step('not modified', GET => '/same', status    => 304);

my $file = $session->step(
    'a static file', GET => '/static/journal.css', status => 200,
    body                 => qr/margin/
);
$session->step('HEAD of it', HEAD                     => '/static/journal.css', status => 200);
$session->step('a static file that is not there', GET => '/static/nothing.css', status => 404);

$session->step('an error', GET      => '/bad', status       => 500);
$session->step('nothing there', GET => '/not/there', status => 404, body => qr/\APage not found\z/);
$session->step('nothing there, without a body', HEAD => '/not/there', status => 404);

done_testing;
