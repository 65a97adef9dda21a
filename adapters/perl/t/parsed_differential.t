use v5.16;
use warnings;
use lib 't/lib';

# The modules whose results the front reproduces, here and in the server, even if their variants in
# C are installed.
BEGIN { @ENV{qw(WWW_FORM_URLENCODED_PP COOKIE_BAKER_PP)} = (1, 1) }

use IO::Socket::UNIX;
use NeedsKirin;
use PlackLook;
use Plackup;
use RawClient;
use Storable qw(thaw);
use Test::More;

# Sends the same requests to Plack::Request behind Kirin, with the front's parsing, and to
# Plack::Request here, without it.

use constant REQUESTS => 6_000;
use constant SEED     => 4;

my $server = Plackup->start(<<'PSGI', '--workers', 1);
use lib 't/lib';
use PlackLook;
use Storable qw(nfreeze);
sub {
    my $env = shift;
    my %plain = map { $_ => $env->{$_} } grep { !ref $env->{$_} && !/^kirin/ } keys %$env;
    my @parsed = grep { exists $env->{"kirin.$_"} } qw(query form cookies);
    my $seen = PlackLook::look($env, $env->{PATH_INFO} =~ s{\A/}{}r);
    return [200, [], [nfreeze({ env => \%plain, parsed => \@parsed, seen => $seen })]];
};
PSGI
my $client = RawClient->new(sub { $server->connect });

my (%given, %parsed, @differences);

# Sends a request with these parts and compares the results. The parts are bytes as a client may
# send them.
sub compare {
    my (%part) = @_;
    my $change = $part{change} // 'none';
    my $head = (defined $part{body} ? 'POST' : 'GET') . " /$change";
    $head .= "?$part{query}" if defined $part{query};
    $head .= " HTTP/1.1\r\nHost: x\r\n";
    $head .= "Cookie: $_\r\n" for ref $part{cookie} ? @{ $part{cookie} } : $part{cookie} // ();
    $head .= "Content-Type: $part{type}\r\n" if defined $part{type};
    $head .= 'Content-Length: ' . length($part{body}) . "\r\n" if defined $part{body};
    $given{$_}++ for grep { length($part{$_} // '') } qw(query cookie body);

    my ($status, $content) = $client->ask("$head\r\n" . ($part{body} // ''));
    my $got =
        $status eq '200' ? thaw($content) : { seen => "status $status", parsed => [], env => {} };
    $parsed{$_}++ for @{ $got->{parsed} };

    open my $input, '<', \($part{body} // '') or die $!;
    my %env = (
        %{ $got->{env} }, QUERY_STRING => $part{query} // '',
        CONTENT_LENGTH                 => length($part{body} // ''),
        'psgi.input'                   => $input, 'psgix.input.buffered' => 1,
    );
    my $expected = PlackLook::look(\%env, $change);
    push @differences, { part => \%part, got => $got->{seen}, expected => $expected }
        if $got->{seen} ne $expected;
}

sub no_differences {
    my $what = shift;
    my @shown = splice @differences;
    is scalar @shown, 0, "no difference: $what";
    diag explain $_ for grep { defined } @shown[0 .. 2];
}

my $FORM = 'application/x-www-form-urlencoded';

subtest 'by hand' => sub {
    my @texts = (
        '', '&', ';', '=', '==', '&&', '&=&', 'a', 'a=', '=a', 'a=1', 'a=1&', '&a=1', 'a=1&&b=2',
        'a=b=c', 'a;b;c=1;', 'a=1;b=2&c=3',
        'a=1&a=2&b=3&a=', '%', '%%', '%4', '%4g', '%g4', '%%41', '%41%', '%2541', '%00',
        'a=%00&b=1', '%1f=1', 'a=%1F', '+', '+=+', 'a+b=c+d',
        'a=%2B%2b+', '%26=%3D', 'a%3Db', 'a=%3b', 'a=%0d%0a%09', '%E9%BA%92=%e9%ba%9f', 'a=%ff%fe',
        'a=%c3%28', 'a=%u9e92', 'a[]=1&a[]=2', 'a[b]=c',
        'a=%E2%80%A8', 'a=1&+b=2', 'a=1&%20b=2', '0', '0=0', 'a=%25%34%31', ('a=1&' x 500) . 'b',
        'x' x 7_000, '%41' x 2_500, '&' x 2_000,
    );
    compare(query => $_) for undef, @texts;
    compare(query => $_)
        for "\xe9\xba\x92=1", 'a="b"', "a='b'", 'a=<b>', 'a=\\', 'a?b=c?d', 'a={b}|c^`';
    # Bodies may have bytes that targets cannot have.
    for my $text (
        @texts, 'a=1& b=2', 'a=1;  b=2', 'a& ', '& &', ' a = b ', "a=1\r\n&b=2", "\0=\0",
        "a=\x1f", "a=\n", 'a=1&b=%', map { chr } 0 .. 255
        )
    {
        compare(body => $text, type => $_, query => 'a=q&c=d') for $FORM;
    }
    for my $type (
        "$FORM; charset=UTF-8", "${FORM}ed", uc $FORM, " $FORM", 'text/plain',
        'multipart/form-data', '', undef
        )
    {
        compare(body => 'a=1&b', type => $type);
        compare(body => '', type      => $type);
        compare(type => $type);
    }
    for my $length (8_190 .. 8_194, 65_534 .. 65_538, 1_048_575 .. 1_048_577, 3_000_000) {
        my $piece = 'a=%41&b=c+d;' . 'x' x 500;
        compare(body => substr($piece x (1 + $length / 512), 0, $length), type => $FORM);
    }
    compare(query => 'q=' . 'x' x $_) for 4_000, 8_100, 8_150;
    my @cookies = (
        '', '0', ';', '=', 'a', 'a=', '=a', 'a=1', 'a=1; b=2', 'a=1;b=2', 'a=1;  b=2', 'a=1 ; b=2',
        "a=1;\tb=2\t;c=3", 'a=1; a=2', '%61=1; a=2', 'a=b=c',
        'a="x y"', 'a=""', 'a="', 'a="x', 'a=x"', 'a=""x""', 'a=%22x%22', 'a="%22"', 'a="x;y"',
        '"a"=1', 'a= 1', 'a = 1', 'a=1,b=2', 'a=%', 'a=%zz', 'a=%00',
        '%1f=1', 'a=%1F', 'a=+', 'a=%2B', "a=\xe9", "\xff=\xfe", 'a=%E9%BA%92', "\xa0a=1\xa0",
        "a=\x85", 'a; b=2; c', '; ;a=1', 'a=1;;;;', 'x' x 8_000, 'a=' . 'x' x 8_190,
        'a=' . 'x' x 8_191, 'a=1; ' x 1_500, join('; ', map { "c$_=%4$_" } 0 .. 9),
        ['a=1', 'b=2; a=3'], ['a="', '"'], ['a', '=1'],
    );
    compare(cookie => $_) for @cookies;
    no_differences('inputs by hand');
};

# Pieces of unusual texts.
my @PIECES = (
    qw(a b c name = = = & & & & ; + %20 % %4 %zz %41 %e9 %BA%92 %FF %2B %26 %3d %3B %25 %0A 1 22 [] "),
    'value', 'x' x 40,
);
my %MORE = (
    query  => ["'", '/', '?', '~', '{', '|'],
    body   => [' ', '; ', '& ', "\r\n", "\xe9", "\xff", "\x{0b}"],
    cookie => [' ', '; ', '; ', '; ', '; ', ',', "\t", "\xe9", "\xa0", '"', qw(= = = =)],
);
# Bytes that the front cannot pass on.
my %RARE =
    (query => ['%00', '%1f'], body => ['%00', "\0", "\x1f", '%1F'], cookie => ['%00', '%1f']);

sub text {
    my $kind = shift;
    my @pieces =
        (@PIECES, rand() < 0.5 ? @{ $MORE{$kind} } : (), rand() < 0.1 ? @{ $RARE{$kind} } : ());
    my $count = rand() < 0.02 ? 300 : 1 + rand 20;
    my $text = join '', map { $pieces[rand @pieces] } 1 .. $count;
    # A field's value has no white space around it.
    $text =~ s/\A[ \t]+|[ \t]+\z//g if $kind eq 'cookie';
    return $text;
}

subtest 'by chance' => sub {
    srand SEED;
    my @changes = sort grep { $_ ne 'none' } keys %PlackLook::change;
    my %before = %given;
    for (1 .. REQUESTS) {
        compare(
            query  => text('query'),
            cookie => text('cookie'),
            rand() < 0.6 ? (body => text('body'), type => rand() < 0.9 ? $FORM : 'text/plain') : (),
            rand() < 0.25 ? (change => $changes[rand @changes]) : (),
        );
    }
    no_differences(REQUESTS . ' requests');
    my $inputs = 0;
    $inputs += $given{$_} - ($before{$_} // 0) for qw(query cookie body);
    cmp_ok $inputs, '>=', 10_000, 'generated inputs';
};

subtest 'after what middleware does' => sub {
    for my $change (sort keys %PlackLook::change) {
        for my $body (undef, '', 'b=2&c=%21') {
            compare(
                change => $change, query => 'a=1', cookie => 'd=4; e=5', body => $body,
                type   => $FORM
            );
            compare(change => $change, body => $body, type => 'text/plain');
            compare(change => $change, body => $body);
        }
        no_differences($change);
    }
};

for my $kind (['query', 'query'], ['cookie', 'cookies'], ['body', 'form']) {
    my ($part, $name) = @$kind;
    note "$name: $parsed{$name} of $given{$part}";
    cmp_ok $parsed{$name}, '>', $given{$part} / 2,
        "the front has parsed most of what there was: $name";
}

done_testing;
