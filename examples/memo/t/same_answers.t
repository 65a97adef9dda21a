use v5.16;
use warnings;
use utf8;

use FindBin qw($Bin);
use lib "$Bin/lib";
use Encode qw(encode_utf8);
use Test::More;
use TestMemcached;
use TestServed;
use TestSite;

# The application that MEMO_APP names, and the one in Perl, with one database and a store each.
# Whatever a visitor asks for, the status, the header fields and the body are the same, byte for
# byte, and so are the items in the stores.

plan skip_all => 'compares the application that MEMO_APP names with the one in Perl'
    if TestSite::is_perl();

my $other = TestSite::language();
my %store = map { $_ => TestMemcached->new } 'perl', $other;
my $perl = TestSite->reference(store => $store{perl}->address);
my $served = TestServed->new(
    language => $other,
    database => $perl->folder . '/memo.sqlite',
    store    => $store{$other}->address
);
my %psgi = (perl => $perl->psgi, $other => $served->psgi);

# A visitor of each application, with the same cookies.
sub twins {
    my ($cookies) = @_;
    my %twin = map { $_ => TestVisitor->new($psgi{$_}) } keys %psgi;
    %{ $_->cookies } = %$cookies for values %twin;
    return \%twin;
}

sub as_text {
    my ($answer) = @_;
    my @fields;
    $answer->headers->scan(sub { push @fields, lc($_[0]) . ": $_[1]" });
    return join "\n", $answer->code, (sort @fields), '', $answer->content;
}

sub same {
    my ($twin, $name, $request) = @_;
    is as_text($request->($twin->{$other})), as_text($request->($twin->{perl})), $name;
    return;
}

# An author's name says which application it was written with.
my %visitor = map { $_ => TestVisitor->new($psgi{$_}) } keys %psgi;
my @memo;
for my $language (sort keys %visitor) {
    my $author = $visitor{$language};
    $author->submit('/signup', '/signup', name => "by-$language", password => 'a good password');
    for my $content (
        "# Tea & *cake*\n\nGreen, 70 °C · <b>hot</b> \"quoted\" and 'quoted'",
        "One\ntwo\r\nthree\rfour \x07five", '---',
        'x [y](https://e.example/?a=1&b=ü) ![p](/p.png) <script>x</script> <!--# include / -->',
        'word ' x 100, "> quote\n\n1. a\n2. b\n\n```perl\nsay '<&>'\n```\n\n## Heading\n\nx  \ny",
        )
    {
        for my $is_private (0, 1) {
            my @private = $is_private ? (is_private => 1) : ();
            push @memo, $author->write(encode_utf8($content), @private);
        }
    }
}
$perl->add_public_memos(bea => 120);

my %cookies = (
    'a stranger'              => {},
    'a visitor of a form'     => { memo_session => 'a' x 36 },
    'a visitor with the hint' => { memo_session => 'f' x 36, memo_signed_in => 1 },
    'a forger'                => { memo_session => 'fragment/total' },
    map { ("the author $_" => $visitor{$_}->cookies) } keys %visitor,
);

subtest 'pages' => sub {
    for my $who (sort keys %cookies) {
        my $twin = twins($cookies{$who});
        for my $path (
            '/', map({ "/recent/$_" } 0 .. 3, '00', '-1'),
            map({ ("/memo/$_", "/memo/$_/neighbours") } @memo, $memo[-1] + 1, $memo[-1] + 120),
            '/memo/999999', '/memo/0', '/memo/', '/memo', '/memo/1x', '/memo/99999999999',
            '/nothing',
            '/session-bar', '/mypage', '/signout', '/%C3%BC', '/memo/1%0A', '/memo/%31',
            '/recent%2F0'
            )
        {
            same($twin, "$path for $who", sub { $_[0]->get($path) });
        }
    }
};

subtest 'forms' => sub {
    for my $who (grep { !/\Aa (?:stranger|forger)\z/ } sort keys %cookies) {
        same(twins($cookies{$who}), "$_ for $who", sub { $_[0]->get($_) }) for '/signin', '/signup';
    }
};

# None of these changes anything.
my @REFUSED = (
    ['/signin', name  => 'by-perl', password => 'wrong'],
    ['/signin', name  => "\0", password      => "\0"],
    ['/signin', name  => '<b>"\'&', password => ''],
    ['/signup', name  => 'by-perl', password => 'a good password'],
    ['/signup', name  => '-', password       => 'a good password'],
    ['/signup', name  => 'lena', password    => 'short'],
    ['/signup', name  => 'lena', password    => "eight\x7fchars"],
    ['/signup', name  => "\xff", password    => 'a good password'],
    ['/memo', content => " \n"],
    ['/memo', content => 'x</textarea>' . 'y' x 64_000, is_private => 1],
    ['/memo', content => encode_utf8("\x{3000}")],
    ['/memo', content => "\xff\xfe not UTF-8"],
    ['/memo', content => 'z' x 300_000],
    ['/recent/0'],
    ['/nothing'],
);

subtest 'forms that are refused' => sub {
    for my $who ('a visitor of a form', 'the author perl') {
        my $twin = twins($cookies{$who});
        my $page = $who =~ /author/ ? '/mypage' : '/signin';
        my $token = $twin->{perl}->csrf_token_on($page);
        for my $form (@REFUSED) {
            my ($path, @fields) = @$form;
            my $shown = "$path " . substr join(' ', @fields), 0, 40;
            same(
                $twin, "$shown of $who",
                sub { $_[0]->post($path, csrf_token => $token, @fields) }
            );
            same(
                $twin, "$shown, forged, of $who",
                sub { $_[0]->post($path, csrf_token => 'forged', @fields) }
            );
        }
        same($twin, "no field of $who", sub { $_[0]->post('/memo') });
    }
};

subtest 'items' => sub {
    # The sessions of those who were signed in by the other application.
    for my $author (values %visitor) {
        twins($author->cookies)->{$_}->get("/memo/$memo[1]") for keys %psgi;
    }
    my %items = map { $_ => { $store{$_}->items } } keys %store;
    # It has the fingerprint of the templates, so neither application trusts the other's pages.
    my %ledger = map { $_ => delete $items{$_}{'memo/ledger'} } keys %items;
    isnt $ledger{$other}, $ledger{perl};
    like $ledger{$_}, qr{\A[0-9a-f]{36}/[0-9a-f]{16} \d+\z}, "the ledger of $_" for keys %ledger;
    is_deeply [sort keys %{ $items{$other} }], [sort keys %{ $items{perl} }], 'the same keys';
    cmp_ok scalar keys %{ $items{perl} }, '>', 20;
    is $items{$other}{$_}, $items{perl}{$_}, $_ for sort keys %{ $items{perl} };
};

subtest 'a session of one application is one of the other, and its end too' => sub {
    my $twin = twins({});
    $twin->{$other}->submit('/signin', '/signin', name => 'BY-perl', password => 'a good password');
    %{ $twin->{perl}->cookies } = %{ $twin->{$other}->cookies };
    same($twin, 'signed in', sub { $_[0]->get('/mypage') });
    like $twin->{perl}->get('/mypage')->content, qr{<strong>by-perl</strong>};
    my %kept = %{ $twin->{perl}->cookies };
    $twin->{perl}->submit('/mypage', '/signout');
    %{ $twin->{perl}->cookies } = %kept;
    same($twin, 'signed out', sub { $_[0]->get('/mypage') });
    is $twin->{$other}->get('/mypage')->code, 303;
};

done_testing;
