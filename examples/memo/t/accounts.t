use v5.16;
use warnings;
use utf8;

use FindBin qw($Bin);
use lib "$Bin/lib";
use Encode qw(encode_utf8);
use Test::More;
use TestSite;

my $site = TestSite->new;

my $STRANGER = qr{\A<a href="/signin">Sign in</a>};

subtest 'who signs up is signed in, and who signs out is not' => sub {
    my $visitor = $site->visitor;
    is $visitor->get('/mypage')->header('Location'), '/signin', 'a stranger has no page of her own';
    my $answer =
        $visitor->submit('/signup', '/signup', name => 'mari', password => 'a good password');
    is $answer->code, 303;
    is $answer->header('Location'), '/mypage';
    like $visitor->get('/mypage')->content, qr{signed in as <strong>mari</strong>};
    like $visitor->get('/session-bar')->content, qr{<strong>mari</strong>};
    is $visitor->get('/signin')->header('Location'), '/mypage',
        'the forms are not for those who are in';

    is $visitor->submit('/mypage', '/signout')->header('Location'), '/';
    like $visitor->get('/session-bar')->content, $STRANGER;
    is $visitor->get('/mypage')->header('Location'), '/signin';
};

subtest 'a session is over when its owner signs out, even for a copy of the cookie' => sub {
    my $visitor = $site->member('kaito');
    my $thief = $site->visitor;
    %{ $thief->cookies } = %{ $visitor->cookies };
    like $thief->get('/session-bar')->content, qr{<strong>kaito</strong>},
        'the copy works until then';
    $visitor->submit('/mypage', '/signout');
    like $thief->get('/session-bar')->content, $STRANGER;
};

subtest 'only the right password signs in' => sub {
    my $visitor = $site->visitor;
    for my $wrong (
        ['mari', 'another password'], ['mari', ''], ['nobody', 'a good password'],
        ['mari', "a good password\0"],
        ['mari', 'a good password and more']
        )
    {
        my $answer =
            $visitor->submit('/signin', '/signin', name => $wrong->[0], password => $wrong->[1]);
        is $answer->code, 400, "@$wrong";
        like $answer->content, qr/Name or password is wrong/;
    }
    like $visitor->get('/session-bar')->content, $STRANGER;
    is $visitor->submit('/signin', '/signin', name => 'MARI', password => 'a good password')->code,
        303,
        'names are the same in capitals';
};

subtest 'names and passwords have rules' => sub {
    my $visitor = $site->visitor;
    for my $bad (
        ['mari', 'a good password', qr/taken/],
        ['Mari', 'a good password', qr/taken/],
        ['a', 'a good password', qr/2 to 20 letters/],
        ['-dash', 'a good password', qr/2 to 20 letters/],
        ['<b>bold</b>', 'a good password', qr/2 to 20 letters/],
        ["line\nfeed", 'a good password', qr/2 to 20 letters/],
        ["ending\n", 'a good password', qr/2 to 20 letters/],
        ['x' x 21, 'a good password', qr/2 to 20 letters/],
        ['lena', 'short', qr/8 to 200 characters/],
        ['lena', 'x' x 201, qr/8 to 200 characters/],
        ['lena', "eight\0chars", qr/control characters/],
        )
    {
        my ($name, $password, $reason) = @$bad;
        my $answer = $visitor->submit('/signup', '/signup', name => $name, password => $password);
        is $answer->code, 400, $name;
        like $answer->content, $reason;
    }
    my $password = encode_utf8('pässwörd 麒麟');
    is $visitor->submit('/signup', '/signup', name => 'lena', password => $password)->code, 303,
        'any script in a password';
    my $again = $site->visitor;
    is $again->submit('/signin', '/signin', name => 'lena', password => $password)->code, 303;
};

subtest 'a form from elsewhere is refused' => sub {
    my $member = $site->member('haruka');
    my $token = $member->csrf_token_on('/mypage');
    my $other = $site->member('oskar')->csrf_token_on('/mypage');
    for my $forged (
        ['no token'], ['an empty token', csrf_token => ''],
        ['a made up token', csrf_token              => 'f' x 64],
        ['the token of another visitor', csrf_token => $other],
        ['a shortened token', csrf_token            => substr $token, 1]
        )
    {
        my ($what, @fields) = @$forged;
        for my $path (qw(/memo /signout /signin /signup)) {
            is $member->post(
                $path, @fields, content => 'forged', name => 'forger',
                password                => 'forged password'
                )->code,
                403, "$what to $path";
        }
    }
    like $member->get('/session-bar')->content, qr{<strong>haruka</strong>}, 'still signed in';
    unlike $member->get('/mypage')->content, qr/forged/, 'nothing was written';
    is $site->visitor->post(
        '/signin', csrf_token => $token, name => 'mari',
        password              => 'a good password'
        )->code, 403,
        'a right token without its cookie is worth nothing';
};

subtest 'signing in gives a new cookie, so a planted one is worth nothing' => sub {
    my $visitor = $site->visitor;
    my $token = $visitor->csrf_token_on('/signin');
    my $planted = $visitor->cookies->{memo_session};
    ok $planted;
    my $answer = $visitor->post(
        '/signin', csrf_token => $token, name => 'mari',
        password              => 'a good password'
    );
    isnt $visitor->cookies->{memo_session}, $planted;
    my ($cookie) = grep { /\Amemo_session=/ } $answer->header('Set-Cookie');
    like $cookie, qr/; HttpOnly/;
    like $cookie, qr/; SameSite=Lax/;
    like $cookie, qr/; Path=\//;
    unlike $cookie, qr/Secure/, 'this was plain HTTP';

    my $other = $site->visitor;
    $other->cookies->{memo_session} = $planted;
    like $other->get('/session-bar')->content, $STRANGER;
};

subtest 'the database keeps neither passwords nor session tokens' => sub {
    my $visitor = $site->member('wakana');
    my $dump = join "\n", map {
        join ',',
            map { $_ // '' } @$_
    } map { @{ $site->app->database->handle->selectall_arrayref("SELECT * FROM $_") } }
        qw(user session);
    like $dump, qr/wakana,\$y\$/, 'the hash is yescrypt';
    unlike $dump, qr/password of wakana/;
    unlike $dump, qr/\Q$visitor->{cookies}{memo_session}/;
};

done_testing;
