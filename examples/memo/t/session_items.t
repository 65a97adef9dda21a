use v5.16;
use warnings;

use FindBin qw($Bin);
use lib "$Bin/lib";
use JSON::PP qw(decode_json);
use Test::More;
use TestMemcached;
use TestSite;

# Copies of sessions in the store, and what pages from there make of them.

my $SIGN_IN = qr{<a href="/signin">Sign in</a>};

sub site_with_store {
    my $memcached = TestMemcached->new;
    my $site = TestSite->new(store => $memcached->address);
    $site->add_public_memos(bea => 1);
    $site->visitor->get($_) for '/', '/recent/0', '/memo/1';
    return ($memcached, $site);
}

sub copy {
    my ($memcached, $visitor) = @_;
    return $memcached->item($visitor->cookies->{memo_session});
}

# The visitor's own pages from the store, without asking the application. Dies if it would have to
# be asked.
sub from_memory {
    my ($memcached, $visitor, $path) = @_;
    no warnings 'redefine';
    local *TestVisitor::get = sub { die "the application is asked for $_[1]" };
    return $memcached->page($path, $visitor);
}

subtest 'pages from the store have name and sign-out form of who is signed in' => sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    is_deeply [sort keys %{ decode_json(copy($memcached, $mari)) }], [qw(csrf_token name user_id)];
    for my $path ('/', '/recent/0', '/memo/1') {
        my $page = from_memory($memcached, $mari, $path);
        like $page, qr{signed in as <strong>mari</strong>}, $path;
        unlike $page, $SIGN_IN;
        is $page, TestMemcached::without_blank_lines($mari->get($path)->content),
            'the same as the application makes it';
        like from_memory($memcached, $site->visitor, $path), $SIGN_IN,
            'and strangers see none of it';
    }
    my ($token) = from_memory($memcached, $mari, '/') =~ /name="csrf_token" value="([^"]+)"/;
    is $mari->post('/signout', csrf_token => $token)->code, 303, 'the form works';
};

# What goes wrong with the store is only warned of.
$SIG{__WARN__} = sub { fail "no warning: @_" };

subtest 'each visitor sees the own name' => sub {
    my ($memcached, $site) = site_with_store();
    my %member = map { $_ => $site->member($_) } qw(mari akira);
    for my $turn (1 .. 2) {
        for my $name (sort keys %member) {
            my $other = $name eq 'mari' ? 'akira' : 'mari';
            my $page = from_memory($memcached, $member{$name}, '/');
            like $page, qr{<strong>$name</strong>};
            unlike $page, qr{<strong>$other</strong>};
        }
    }
};

subtest
    'who signs out is a stranger at once, on pages from the store and with a copy of the cookie' =>
    sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    my $thief = $site->visitor;
    %{ $thief->cookies } = %{ $mari->cookies };
    like from_memory($memcached, $thief, '/'), qr{<strong>mari</strong>};
    $mari->submit('/mypage', '/signout');
    like from_memory($memcached, $mari, '/'), $SIGN_IN;
    is copy($memcached, $thief), undef;
    like $memcached->page('/', $thief), $SIGN_IN, 'also when the application is asked';
    is copy($memcached, $thief), undef, 'which does not write the copy again';
    };

subtest 'a copy that is missing is made again by the first page that asks for it' => sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    my $before = copy($memcached, $mari);
    $memcached->delete($mari->cookies->{memo_session});
    like $memcached->page('/', $mari), qr{<strong>mari</strong>}, 'the page is right';
    is copy($memcached, $mari), $before, 'and the copy is back';
    like from_memory($memcached, $mari, '/'), qr{<strong>mari</strong>};
};

subtest 'a forged cookie shows nobody' => sub {
    my ($memcached, $site) = site_with_store();
    $site->member('mari');
    for my $forged ('f' x 36, 'memo/ledger', '/', 'fragment/total', '') {
        my $forger = $site->visitor;
        %{ $forger->cookies } = (memo_session => $forged, memo_signed_in => 1);
        like $forger->get('/')->content, $SIGN_IN, $forged;
        like $forger->get('/session-bar')->content, qr{\A$SIGN_IN};
    }
};

subtest 'a visitor of only the sign-in form does not make pages ask' => sub {
    my ($memcached, $site) = site_with_store();
    my $visitor = $site->visitor;
    $visitor->get('/signin');
    ok $visitor->cookies->{memo_session};
    like from_memory($memcached, $visitor, '/'), $SIGN_IN;
};

subtest 'names are escaped' => sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    $site->app->database->handle->do(
        'UPDATE user SET name = ? WHERE name = ?', undef, '<b>"&',
        'mari'
    );
    $memcached->delete($mari->cookies->{memo_session});
    $mari->get('/mypage');
    is decode_json(copy($memcached, $mari))->{name}, '<b>"&', 'the copy has it as it is';
    is $memcached->item('fragment/session-bar') =~ s/<!--#.*?-->//gr =~ /<b>/ ? 1 : 0, 0;
    like $_, qr{<strong>&lt;b&gt;&quot;&amp;</strong>}
        for from_memory($memcached, $mari, '/'), $mari->get('/')->content;
};

subtest 'a copy is not written after its session has ended' => sub {
    plan skip_all => TestSite::own_tests() if !TestSite::is_perl();
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    my $token = $mari->cookies->{memo_session};
    $memcached->delete($token);
    # Another process signs out between this one's look and its write.
    my $sessions = $site->app->sessions;
    my $items = Memo::SessionItems->new(
        database => $site->app->database,
        store    => Memo::StoreClient->new($memcached->address)
    );
    $site->app->database->handle->do('DELETE FROM session');
    $items->keep($token, time + 60, sub { $sessions->user($token) });
    is $memcached->item($token), undef;
};

subtest 'a copy that could not be deleted is deleted before the next answer' => sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    my $token = $mari->cookies->{memo_session};
    my $copy = copy($memcached, $mari);
    my ($csrf_token) = $mari->get('/mypage')->content =~ /name="csrf_token" value="([^"]+)"/;
    $memcached->stop;
    is $mari->post('/signout', csrf_token => $csrf_token)->code, 303,
        'she is signed out without a store';
    # What a store that was only out of reach would still have.
    $memcached->start;
    $memcached->set($token, $copy);
    my $deadline = time + 30;
    while (defined $memcached->item($token) && time < $deadline) {
        $site->visitor->get('/signin');
        select undef, undef, undef, 0.05;
    }
    is $memcached->item($token), undef;
};

subtest 'the author sees the links to her private memos on a public one from the store' => sub {
    my ($memcached, $site) = site_with_store();
    my $mari = $site->member('mari');
    my @ids = map { $mari->write("Memo $_", $_ % 2 ? () : (is_private => 1)) } 1 .. 3;
    my $akira = $site->member('akira');
    $akira->get("/memo/$ids[2]");
    my $links = sub { return { $_[0] =~ m{<a rel="\w+" class="(older|newer)" href="([^"]+)">}g } };
    is_deeply $links->($memcached->page("/memo/$ids[2]", $mari)), { older => "/memo/$ids[1]" };
    is_deeply $links->(from_memory($memcached, $akira, "/memo/$ids[2]")),
        { older => "/memo/$ids[0]" };
    is_deeply $links->(from_memory($memcached, $site->visitor, "/memo/$ids[2]")),
        { older => "/memo/$ids[0]" };
};

done_testing;
