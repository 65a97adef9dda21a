use v5.16;
use warnings;

use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Temp ();
use Test::More;
use TestMemcached;
use TestSite;

my $MARK = 'fragment/total';

sub site_with_store {
    my $memcached = TestMemcached->new;
    return ($memcached, TestSite->new(store => $memcached->address, @_));
}

# What a page is when made now, by a site that has no store. With MEMO_APP this compares the pages
# of both applications.
sub fresh {
    my ($site, $path) = @_;
    my $other = TestSite->reference(folder => $site->folder);
    return TestMemcached::without_blank_lines($other->visitor->get($path)->content);
}

subtest 'a page that was asked for is in the store, as Kirin will send it' => sub {
    my ($memcached, $site) = site_with_store();
    my ($id) = $site->add_public_memos(bea => 1);
    for my $path ('/', '/recent/0', "/memo/$id") {
        is $memcached->item($path), undef, "$path is not there before";
        my $answer = TestMemcached::without_blank_lines($site->visitor->get($path)->content);
        is $memcached->page($path), $answer, "$path is the same from memory";
        is $answer, fresh($site, $path), "$path is the same without a store";
        unlike $answer, qr/<!--#/;
    }
    like $memcached->item('/'), qr/\Atext\/html; charset=UTF-8\r\n<!DOCTYPE html>/,
        'media type, CR LF, body';
    like $memcached->item("/memo/$id"),
        qr{include fragment/session-bar -->.*<!--\# include fragment/total -->.*<!--\# include fragment/newest -->}s;
    is $memcached->item($MARK), '1';
};

subtest 'only what has no visitor in it is stored' => sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    my $secret = $mari->write("Secret garden\n\nUnder the fern", is_private => 1);
    my $public = $mari->write('Tea');
    for my $visitor ($mari, $site->visitor) {
        $visitor->get($_)
            for '/', '/recent/0', "/memo/$secret", "/memo/$public", '/mypage', '/session-bar',
            "/memo/$public/neighbours", '/signin', '/nothing', '/recent/7', '/memo/777';
    }
    my %items = $memcached->items;
    my $session = delete $items{ $mari->cookies->{memo_session} };
    # What only its author gets, and only from code.
    delete @items{ "private/memo/$secret", 'author/1/public', 'author/1/private' };
    is_deeply [sort keys %items],
        [
        sort '/', '/recent/0', "/memo/$public", $MARK, 'fragment/newest', 'fragment/session-bar',
        'memo/ledger'
        ];
    my ($token) = $session =~ /"csrf_token":"([^"]+)"/;
    unlike join("\n", values %items), qr/Secret|fern|$token|signed in as <strong>mari/;
};

subtest 'a new public memo is on every page it belongs to when its author has the answer' => sub {
    my ($memcached, $site) = site_with_store();
    my @ids = $site->add_public_memos(bea => 199);
    my $mari = $site->member('mari');
    my $one = $mari->write('One of mari');
    my @paths = ('/', '/recent/0', '/recent/1', "/memo/$one", "/memo/$ids[0]", "/memo/$ids[-1]");
    $site->visitor->get($_) for @paths;
    ok defined $memcached->item($_), "$_ is stored" for @paths;

    my $two = $mari->write('Two of mari');
    like $memcached->page('/'), qr/Two of mari.*One of mari/s,
        'the front page is stored again at once';
    is $memcached->page('/'), fresh($site, '/');
    is $memcached->item($_), undef, "$_ is gone" for '/recent/0', '/recent/1', "/memo/$one";
    for my $path ("/memo/$ids[0]", "/memo/$ids[-1]") {
        is $memcached->page($path), fresh($site, $path), "$path stayed, and its fragments are new";
    }
    $site->visitor->get($_) for @paths, "/memo/$two", '/recent/2';
    is $memcached->page($_), fresh($site, $_), "$_ is right" for @paths, "/memo/$two", '/recent/2';
    like $memcached->page("/memo/$one"), qr{class="newer" href="/memo/$two"};

    $mari->write('Three of mari', is_private => 1);
    ok defined $memcached->item($_), "$_ does not mind a private memo"
        for @paths, "/memo/$two", '/recent/2';
};

subtest 'a page rendered before a memo is not stored after it' => sub {
    plan skip_all => TestSite::own_tests() if !TestSite::is_perl();
    my ($memcached, $site) = site_with_store();
    $site->add_public_memos(bea => 3);
    my $pages = $site->app->pages;
    my $version = $site->app->memos->public_total;
    my $old = $pages->render('/');
    ok $pages->store->push('/', $old, $version), 'in time it is stored';

    $site->add_public_memos(chika => 1);
    ok !$pages->store->push('/', $old, $version),
        'too late it is not, even before its writer has come to settle';
    is $memcached->item('/'), undef, 'and what was stored in time is gone';
};

subtest 'what a process that died after its commit left undone, the next one does' => sub {
    my ($memcached, $site) = site_with_store();
    my ($one) = $site->add_public_memos(bea => 1);
    $site->visitor->get($_) for '/', "/memo/$one";
    # add_public_memos commits and does not settle, like a process killed just there.
    $site->app->memos->create(1, 'Left behind', 0);
    unlike $memcached->page('/'), qr/Left behind/, 'so the page is old now';

    TestSite->new(folder => $site->folder, store => $memcached->address)->visitor->get('/signin');
    is $memcached->item($_), undef, "$_ went with the first request of a new process"
        for '/', "/memo/$one";
    is $memcached->item($MARK), '2';
};

subtest 'a store with the pages of another life is not believed' => sub {
    for my $ledger ('another site 1', '', 'garbage', undef) {
        my ($memcached, $site) = site_with_store();
        my ($one) = $site->add_public_memos(bea => 1);
        $memcached->set($_, "text/html; charset=UTF-8\r\nold") for '/', "/memo/$one", '/recent/0';
        $memcached->set('memo/ledger', $ledger) if defined $ledger;
        $memcached->set('another/item', 'stays');
        $site->visitor->get('/signin');
        is $memcached->item($_), undef, $_ for '/', "/memo/$one", '/recent/0';
        is $memcached->item('another/item'), 'stays';
    }
};

subtest 'a lost fragment comes back with the next page' => sub {
    my ($memcached, $site) = site_with_store();
    my ($one) = $site->add_public_memos(bea => 2);
    $site->visitor->get('/');
    Cache::Memcached::Fast->new({ servers => [$memcached->{socket}] })->delete($MARK);
    $site->visitor->get("/memo/$one");
    is $memcached->page('/'), fresh($site, '/');
};

subtest 'without its store the site works the same, and finds it again' => sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    $mari->write('Before');
    like $memcached->page('/'), qr/Before/;
    $memcached->stop;

    my $id = $mari->write('While it was away');
    like $site->visitor->get('/')->content, qr/While it was away/;
    is $site->visitor->get("/memo/$id")->code, 200;
    is TestMemcached::without_blank_lines($site->visitor->get('/')->content), fresh($site, '/');

    $memcached->start;
    # The client leaves a store that failed alone for a while (failure_timeout).
    my $deadline = time + 30;
    until (defined $memcached->item('/') || time > $deadline) {
        $site->visitor->get('/');
        select undef, undef, undef, 0.05;
    }
    is $memcached->page('/'), fresh($site, '/'), 'pages are stored again';
};

subtest 'an address that nobody answers is no different' => sub {
    my $folder = File::Temp->newdir;
    for my $address ("unix:$folder/nothing.sock", '127.0.0.1:1') {
        my $site = TestSite->new(store => $address);
        my $mari = $site->member('mari');
        my $id = $mari->write('Hello');
        is TestMemcached::without_blank_lines($site->visitor->get($_)->content), fresh($site, $_),
            $_ for '/', '/recent/0', "/memo/$id";
    }
};

done_testing;
