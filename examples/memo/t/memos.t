use v5.16;
use warnings;
use utf8;

use FindBin qw($Bin);
use lib "$Bin/lib";
use Test::More;
use TestSite;

my $site = TestSite->new;

sub links { return { $_[0]->content =~ m{<a rel="\w+" class="(older|newer)" href="([^"]+)">}g } }

subtest 'an empty site has a front page' => sub {
    my $answer = $site->visitor->get('/');
    is $answer->code, 200;
    like $answer->content, qr{<strong id="total">0</strong>};
};

subtest 'a public memo is on the front page at once, for everybody' => sub {
    my $mari = $site->member('mari');
    my $id = $mari->write("# Tea & *cake*\n\nGreen, 70 °C");
    my $page = $site->visitor->get('/')->content;
    like $page, qr{<a class="title" href="/memo/$id">Tea &amp; cake</a>};
    like $page, qr{<strong id="total">1</strong>};
    like $site->visitor->get("/memo/$id")->content, qr{<h1>Tea &amp; cake</h1>};
    like $mari->get('/mypage')->content, qr{href="/memo/$id"};
};

subtest 'a private memo is for its author alone' => sub {
    my $mari = $site->member('mari2');
    my $akira = $site->member('akira');
    my $before = $site->visitor->get('/')->content;
    my $id = $mari->write("Secret garden\n\nUnder the fern.", is_private => 1);

    my $own = $mari->get("/memo/$id");
    is $own->code, 200;
    like $own->content, qr/Secret garden/;
    is $own->header('Cache-Control'), 'private, no-store';
    like $mari->get('/mypage')->content, qr{Secret garden};

    for my $other ($akira, $site->visitor) {
        my $answer = $other->get("/memo/$id");
        is $answer->code, 404;
        unlike $answer->content, qr/Secret|fern/;
        unlike $other->get($_)->content, qr/Secret garden/ for '/', '/recent/0', '/mypage';
        is $other->get("/memo/$id/neighbours")->code, 404;
    }
    is $site->visitor->get('/')->content, $before, 'the front page did not change';
};

subtest 'older and newer lead through the public memos of one author; its author sees all' => sub {
    my $bea = $site->member('bea');
    my $chika = $site->member('chika');
    my $one = $bea->write('One of bea');
    $chika->write('Between, of another');
    my $two = $bea->write('Two of bea, private', is_private => 1);
    my $three = $bea->write('Three of bea');

    is_deeply links($chika->get("/memo/$one")), { newer => "/memo/$three" };
    is_deeply links($chika->get("/memo/$three")), { older => "/memo/$one" };
    is_deeply links($bea->get("/memo/$two")), { older => "/memo/$one", newer => "/memo/$three" };
    is_deeply links($bea->get("/memo/$three")), { older => "/memo/$two" }, 'on a public memo too';
    is_deeply links($bea->get("/memo/$three/neighbours")), { older => "/memo/$two" },
        'what a page from the store includes';
    is $_->get("/memo/$three/neighbours")->code, 404, 'and not for others'
        for $chika, $site->visitor;
};

subtest 'recent pages hold a hundred each' => sub {
    my $paged = TestSite->new;
    my @ids = $paged->add_public_memos(dario => 201);
    my @seen;
    for my $page (0 .. 2) {
        my $answer = $paged->visitor->get("/recent/$page");
        is $answer->code, 200;
        push @seen, [$answer->content =~ m{<a class="title" href="/memo/(\d+)">}g];
    }
    is_deeply [map { scalar @$_ } @seen], [100, 100, 1];
    is_deeply [map { @$_ } @seen], [reverse @ids], 'each once, newest first';
    is_deeply links($paged->visitor->get('/recent/1')),
        { newer => '/recent/0', older => '/recent/2' };
    is_deeply links($paged->visitor->get('/recent/2')), { newer => '/recent/1' };
    is $paged->visitor->get('/recent/3')->code, 404, 'and no page beyond';
};

subtest 'a memo that cannot be saved comes back in the form' => sub {
    my $emi = $site->member('emi');
    is $emi->submit('/mypage', '/memo', content => " \n")->code, 400;
    my $answer = $emi->submit('/mypage', '/memo', content => 'x</textarea>' . 'y' x 64_000);
    is $answer->code, 400;
    like $answer->content, qr{>\nx&lt;/textarea&gt;y}, 'with what was written';
    is $emi->submit('/mypage', '/memo', content => "\xff\xfe not UTF-8")->code, 400;
    is $emi->submit('/mypage', '/memo', content => 'z' x 300_000)->code, 413;
    is $site->visitor->submit('/signin', '/memo', content => 'by nobody')->code, 403;
    unlike $site->visitor->get('/')->content, qr/by nobody/;
};

subtest 'what is not there, or not done so' => sub {
    my $visitor = $site->visitor;
    is $visitor->get($_)->code, 404, $_
        for qw(/memo/999999 /memo/0 /memo/ /memo/1x /memo/01 /recent/00 /nothing /memo/99999999999);
    my $answer = $visitor->get('/signout');
    is $answer->code, 405;
    is $answer->header('Allow'), 'POST';
    is $visitor->post('/recent/0')->code, 405;
};

subtest 'every page says what it is and runs no script' => sub {
    my $member = $site->member('farid');
    my $id = $member->write('Headers');
    for my $path ('/', '/recent/0', "/memo/$id", '/mypage', '/signin', '/nothing', '/session-bar') {
        my $answer = ($path eq '/signin' ? $site->visitor : $member)->get($path);
        is $answer->header('X-Content-Type-Options'), 'nosniff', $path;
        like $answer->header('Content-Security-Policy'),
            qr/\Adefault-src 'none'; style-src 'self'; img-src/;
        is $answer->header('Content-Type'), 'text/html; charset=UTF-8';
        unlike $answer->content, qr/<!--#/, 'no include comment is left';
        unlike $answer->content, qr/<script|<style| on\w+=| style=/,
            'no script, and nothing inline';
    }
    is $member->get($_)->header('Cache-Control'), 'private, no-store',
        "$_ of a member is no cache's" for '/', '/session-bar';
    is $site->visitor->get('/')->header('Cache-Control'), 'no-cache';
    is $site->visitor->get('/')->header('Vary'), 'Cookie';
};

done_testing;
