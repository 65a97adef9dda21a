use v5.16;
use warnings;

use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use TestMemcached;
use TestSite;

# What the store has of private memos. What is made of it:
# crates/kirin/tests/pages/memo_private.rs in Kirin's sources.

sub site_with_store {
    my $memcached = TestMemcached->new;
    return ($memcached, TestSite->new(store => $memcached->address));
}

subtest 'a private memo is stored when its author has looked at it, without anybody\'s token' =>
    sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    my $id = $mari->write("Secret\n\nUnder the fern", is_private => 1);
    $_->get("/memo/$id") for $site->visitor, $site->member('akira');
    is $memcached->item("private/memo/$id"), undef, 'strangers do not make it';
    my $page = $mari->get("/memo/$id")->content;
    my $item = $memcached->item("private/memo/$id");
    like $item, qr{\A1\n<!DOCTYPE html>.*Under the fern}s;
    my ($token) = $page =~ /name="csrf_token" value="([^"]+)"/;
    unlike $item, qr/\Q$token/;
    unlike $item, qr/\A[^\r]*\r\n/, 'no media type line, so nobody can request it';
    unlike $page, qr/<!--#/;
    };

# What goes wrong with the store is only warned of.
$SIG{__WARN__} = sub { fail "no warning: @_" };

subtest 'the lists of an author are all memos, or are not there' => sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    my @ids = map { $mari->write("Memo $_", $_ % 2 ? () : (is_private => 1)) } 1 .. 4;
    $mari->get("/memo/$ids[1]");
    is $memcached->item('author/1/public'), "$ids[0] $ids[2]";
    is $memcached->item('author/1/private'), "$ids[1] $ids[3]";

    for my $is_private (0, 1) {
        push @ids, $mari->write('Another', $is_private ? (is_private => 1) : ());
        is $memcached->item("author/1/$_"), undef, "$_ is gone with a new memo"
            for qw(public private);
        $mari->get("/memo/$ids[1]");
    }
    is $memcached->item('author/1/public'), "$ids[0] $ids[2] $ids[4]";
    is $memcached->item('author/1/private'), "$ids[1] $ids[3] $ids[5]";
    my $third = $mari->write('Looked at on its own page');
    $mari->get("/memo/$third");
    is $memcached->item('author/1/public'), "$ids[0] $ids[2] $ids[4] $third",
        'a public page makes them, too';
    my $bea = $site->member('bea');
    $bea->write('Of another');
    is $memcached->item('author/1/public'), "$ids[0] $ids[2] $ids[4] $third",
        'others do not change it';
};

subtest 'a list is gone before its memo is there' => sub {
    plan skip_all => TestSite::own_tests() if !TestSite::is_perl();
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    my $id = $mari->write('Secret', is_private => 1);
    $mari->get("/memo/$id");
    ok defined $memcached->item('author/1/private');
    my $app = $site->app;
    # A process that dies before it has committed, or just behind.
    eval {
        $app->memos->create(
            1, 'Lost', 1,
            sub { $app->private_pages->author_writes(1); die "killed\n" }
        );
    };
    is $@, "killed\n";
    is $memcached->item('author/1/private'), undef;
    $mari->get("/memo/$id");
    is $memcached->item('author/1/private'), $id;
};

subtest 'a store with the pages of another life loses the private ones too' => sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    my $id = $mari->write('Secret', is_private => 1);
    $mari->get("/memo/$id");
    $memcached->set('memo/ledger', 'another site 1');
    TestSite->new(folder => $site->folder, store => $memcached->address)->visitor->get('/signin');
    is $memcached->item($_), undef, $_
        for "private/memo/$id", 'author/1/public', 'author/1/private';
};

done_testing;
