use v5.16;
use warnings;
use lib 't/lib';
use Kirin::Store;
use MIME::Base64 ();
use Memcached;
use NeedsKirin;
use Test::More;

my $server = Memcached->start;
my @address = (address => $server->address);
my $all = Kirin::Store->new(@address);

subtest 'a site given to new is before every key' => sub {
    my $store = Kirin::Store->new(@address, site => 'example.org');
    is $store->set('a', 'one'), 1, 'set';
    is $store->get('a'), 'one', 'get';
    is $all->get('a'), undef, 'not under the bare key';
    is $all->get('example.org:a'), 'one', 'but under that of the site';
    is $store->add('b', 'two'), 1, 'add';
    is $store->replace('b', 'three'), 1, 'replace';
    is_deeply $store->get_multi(qw(a b c)), { a => 'one', b => 'three' }, 'get_multi';
    my $got = $store->gets('a');
    is $store->cas('a', $got->[0], 'four'), 1, 'cas';
    is $store->set('n', 5), 1, 'a number';
    is $store->incr('n'), 6, 'incr';
    is $store->touch('n', 100), 1, 'touch';
    is $store->delete('a'), 1, 'delete';
    is $all->get('example.org:n'), 6, 'counted under the key of the site';
};

subtest 'the site of the request counts unless new got one' => sub {
    my ($any, $fixed, $none) = map { Kirin::Store->new(@address, @$_) } [], [site => 'fixed'],
        [site => ''];
    for my $case (['one.org', 'one.org:k'], ['two.org', 'two.org:k'], [undef, 'k'], ['', 'k']) {
        my ($site, $key) = @$case;
        local $Kirin::Store::Site = $site;
        my $value = 'of ' . ($site // 'none');
        is $any->set('k', $value), 1, $value;
        is $none->get($key), $value, "stored as $key";
        is $fixed->get('k'), undef, 'not for another site';
        is $any->delete('k'), 1, 'deleted there, too';
        is $none->get($key), undef, 'and gone';
    }
    local $Kirin::Store::Site = 'one.org';
    is $fixed->set('k', 'x'), 1, 'a fixed site';
    is $none->get('fixed:k'), 'x', 'is kept in a request of another';
    is $none->set('k', 'y'), 1, 'no site';
    is $any->get('k'), undef, 'is not that of the request';
};

subtest 'the namespace is behind the site' => sub {
    my $store = Kirin::Store->new(@address, site => 'shop', namespace => 'memo:');
    $store->set('a', 'x');
    is $all->get('shop:memo:a'), 'x', 'key';
};

subtest 'tags and purges are those of the site' => sub {
    no warnings 'redefine';
    my @sent;
    my $sends = Kirin::Store::Connection->can('send');
    local *Kirin::Store::Connection::send = sub { push @sent, $_[1]; $sends->(@_) };
    my $store = Kirin::Store->new(@address, site => 'shop');
    $store->purge(keys => '/a', prefixes => '/b/', tags => 't');
    like "@sent", qr{^md shop:/a\r$}m, 'a key';
    like "@sent", qr{^\s*md shop:/b/ Pprefix\r$}m, 'a prefix';
    like "@sent", qr{^\s*md shop:t Ptag\r$}m, 'a tag';
    my $cached = MIME::Base64::encode_base64("\0cshop:/a", '');
    like "@sent", qr{^\s*md \Q$cached\E b Ptag\r$}m, 'what routes have cached of the key';
    $cached = MIME::Base64::encode_base64("\0cshop:/b/", '');
    like "@sent", qr{^\s*md \Q$cached\E b Pprefix\r$}m, 'and of the prefix';
    @sent = ();
    $store->set('k', 'v', 60, tags => ['t', 'u']);
    like "@sent", qr{^ms shop:k 1 T60 F0 MS Ptags=shop:t,shop:u\r$}m, 'tags of an item';
};

subtest 'names that would leave the site are refused' => sub {
    for my $site ('a:b', 'a/b', 'a b', ":", "a\n") {
        ok !eval { Kirin::Store->new(@address, site => $site) }, "site '$site'";
        like $@, qr/has no colon, slash and space/, 'with a reason';
    }
    my $store = Kirin::Store->new(@address, site => 'x' x 128);
    is $store->set('k' x 121, 'v'), 1, 'a key of 250 bytes with the site';
    is $store->set('k' x 122, 'v'), undef, 'of 251';
    like $store->error, qr/1 to 250 bytes/, 'with a reason';
    is $store->set('shop:other', 'v'), 1, 'the name of another site';
    is $all->get('shop:other'), undef, 'is a key of this one';
};

done_testing;
