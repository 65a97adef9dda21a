use v5.16;
use warnings;
use lib 't/lib';
use NeedsKirin;
use Browser;
use JSON::PP ();
use Kirin::Store;
use Memcached;
use Plack::Middleware::Session::Kirin;
use Plackup;
use Test::More;

# Writes of a request while other requests of the same visitor are in progress. A request inside
# another one comes after the first has read the session and before it writes.

my $server = Memcached->start;
my $store = Kirin::Store->new(address => $server->address);

our $code;
my $app = Plack::Middleware::Session::Kirin->wrap(
    sub {
        my $env = shift;
        [200, [], [$code->($env->{'psgix.session'}, $env->{'psgix.session.options'}) // '']];
    },
    store => $store, keep_empty => 0,
);

sub ask {
    my ($browser, $do) = @_;
    local $code = $do;
    return $browser->get('/');
}

# Returns a visitor with a session, and a second window of the same browser.
sub visitor {
    my $browser = Browser->new($app);
    ask($browser, sub { %{ $_[0] } = (user => 'tama', count => 1, list => [1]) });
    my $other = Browser->new($app);
    $other->{cookie} = { %{ $browser->{cookie} } };
    return ($browser, $other, $browser->{cookie}{simple_session});
}

for my $end (
    ['signing out', sub { $_[1]{expire} = 1 }],
    ['a changed id', sub { $_[1]{change_id} = 1 }],
    )
{
    my ($name, $do) = @$end;
    subtest "$name is not undone by a request in flight" => sub {
        my ($browser, $other, $id) = visitor();
        ask($browser, sub { $_[0]{count}++; ask($other, $do) });
        is $store->get($id), undef, 'the session is gone';
        is ask($browser, sub { $_[0]{user} // 'nobody' }), 'nobody', 'and its id is worth nothing';
    };
}

subtest 'a request in flight that signs out by emptying the session' => sub {
    my ($browser, $other, $id) = visitor();
    ask(
        $browser,
        sub {
            $_[0]{count}++;
            ask($other, sub { delete $_[0]{user} });
        }
    );
    is_deeply $store->get($id), { count => 2, list => [1] }, 'the member stays away';
};

subtest 'a session that ends while its id changes does not live on' => sub {
    my ($browser, $other, $id) = visitor();
    ask(
        $browser,
        sub {
            my $seen = $_[0]{user};
            $_[1]{change_id} = 1;
            ask($other, sub { $_[1]{expire} = 1 });
        }
    );
    is $store->get($id), undef, 'not under the old id';
    is ask($browser, sub { $_[0]{user} // 'nobody' }), 'nobody', 'nor under another';
};

subtest 'what others write while an id changes is kept' => sub {
    my ($browser, $other, $id) = visitor();
    ask(
        $browser,
        sub {
            my $seen = $_[0]{user};
            $_[1]{change_id} = 1;
            ask($other, sub { $_[0]{new} = 1 });
        }
    );
    isnt $browser->{cookie}{simple_session}, $id, 'there is a new id';
    is_deeply $store->get($browser->{cookie}{simple_session}),
        { user => 'tama', count => 1, list => [1], new => 1 }, 'with all';
};

my %merge = (
    'different members' => [
        sub { $_[0]{a} = 1 }, sub { $_[0]{b} = 2 },
        { user => 'tama', count => 1, list => [1], a => 1, b => 2 }
    ],
    'the same member' => [
        sub { $_[0]{count} = 5 }, sub { $_[0]{count} = 7 },
        { user => 'tama', count => 5, list => [1] }
    ],
    'one deletes, one changes' =>
        [sub { delete $_[0]{user} }, sub { $_[0]{user} = 'buchi' }, { count => 1, list => [1] }],
    'one changes, one deletes' => [
        sub { $_[0]{user} = 'buchi' }, sub { delete $_[0]{user} },
        { user => 'buchi', count => 1, list => [1] }
    ],
    'inside of a reference' => [
        sub { push @{ $_[0]{list} }, 2 }, sub { $_[0]{count} = 2 },
        { user => 'tama', count => 2, list => [1, 2] }
    ],
    'the other clears all' => [sub { $_[0]{count} = 2 }, sub { %{ $_[0] } = () }, { count => 2 }],
    'this one clears all'  => [sub { %{ $_[0] } = () }, sub { $_[0]{new} = 1 }, { new => 1 }],
);
for my $name (sort keys %merge) {
    my ($mine, $theirs, $expected) = @{ $merge{$name} };
    my ($browser, $other, $id) = visitor();
    ask($browser, sub { my $read = $_[0]{user}; ask($other, $theirs); $mine->(@_); '' });
    is_deeply $store->get($id), $expected, "merged: $name";
}

subtest 'a session that is read only is not written' => sub {
    my ($browser, $other, $id) = visitor();
    my ($before) = @{ $store->gets($id) };
    ask($browser, sub { $_[0]{user} });
    is $store->gets($id)->[0], $before, 'the same number';
};

subtest 'requests at the same time through the built program' => sub {
    my $site = Plackup->start(<<'PSGI', '--workers', 8);
        use Plack::Middleware::Session::Kirin;
        Plack::Middleware::Session::Kirin->wrap(sub {
            my ($path, $session) = @{ $_[0] }{qw(PATH_INFO psgix.session)};
            if ($path eq '/begin') { $session->{user} = 'tama' }
            elsif ($path eq '/out') { $_[0]{'psgix.session.options'}{expire} = 1 }
            elsif ($path =~ m{\A/add/([0-9]+)\z}) {
                my $seen = $session->{user};
                select undef, undef, undef, 0.05;
                $session->{"member$1"} = $1;
            }
            [200, [], [join ',', sort keys %$session]];
        });
PSGI
    my ($head) = $site->receive($site->send('/begin'));
    my ($cookie) = $head =~ /^set-cookie: ([^;\r]+)/mi;
    my $send = sub {
        my $socket = $site->connect;
        syswrite $socket,
            "GET $_[0] HTTP/1.1\r\nHost: x\r\nCookie: $cookie\r\nConnection: close\r\n\r\n";
        return $socket;
    };
    my $get = sub { ($site->receive($send->($_[0])))[1] };
    $site->receive($_) for map { $send->("/add/$_") } 1 .. 8;
    is $get->('/'), join(',', (map { "member$_" } 1 .. 8), 'user'), 'of eight writes all are there';

    my @in_flight = map { $send->("/add/$_") } 11 .. 14;
    $get->('/out');
    $site->receive($_) for @in_flight;
    unlike $get->('/'), qr/user/, 'signed out is signed out';
};

done_testing;
