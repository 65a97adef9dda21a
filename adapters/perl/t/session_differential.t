use v5.16;
use warnings;
use lib 't/lib';
use Browser;
use CountingCache;
use Plack::Middleware::Session::Kirin;
use Test::More;

BEGIN {
    plan skip_all => 'Plack::Middleware::Session is not installed'
        if !eval {
        require Plack::Middleware::Session;
        require Plack::Session;
        require Plack::Session::State::Cookie;
        require Plack::Session::Store::Cache;
        1;
        };
}

# The same visitors do the same things with the same application, once with
# Plack::Middleware::Session and once with Kirin's middleware. After each request both must have
# shown the same to the application, and must have the same data in the store for each visitor.

use constant { ROUNDS => 3000, VISITORS => 6 };

# Another seed each day would find more, but would also fail on days without a change.
srand 20261121;

my $what;

sub application {
    my $env = shift;
    my $session = $env->{'psgix.session'};
    my $object = Plack::Session->new($env);
    my $seen = join ' ', map { "$_=" . show($session->{$_}) } sort keys %$session;
    $what->($session, $env->{'psgix.session.options'}, $object);
    return [200, ['Content-Type' => 'text/plain'], [$seen]];
}

sub show {
    my $value = shift;
    return ref $value ? '[' . join(',', map { show($_) } @$value) . ']' : $value // 'undef';
}

my @NAMES = qw(a b c);
my @ACTIONS = (
    [
        reads => sub {
            my ($key) = @_;
            sub { my $text = $_[0]{$key} // '' }
        }
    ],
    [
        sets => sub {
            my ($key, $value) = @_;
            sub { $_[0]{$key} = $value }
        }
    ],
    [
        sets_object => sub {
            my ($key, $value) = @_;
            sub { $_[2]->set($key, $value) }
        }
    ],
    [
        gets_object => sub {
            my ($key) = @_;
            sub { $_[2]->get($key) }
        }
    ],
    [
        removes => sub {
            my ($key) = @_;
            sub { $_[2]->remove($key) }
        }
    ],
    [
        deletes => sub {
            my ($key) = @_;
            sub { delete $_[0]{$key} }
        }
    ],
    [
        makes_a_list => sub {
            my ($key, $value) = @_;
            sub { $_[0]{$key} = [$value] }
        }
    ],
    [
        pushes => sub {
            my ($key, $value) = @_;
            sub { push @{ $_[0]{$key} }, $value if ref $_[0]{$key} }
        }
    ],
    [
        clears => sub {
            sub { %{ $_[0] } = () }
        }
    ],
    [
        changes_id => sub {
            sub { $_[1]{change_id} = 1 }
        }
    ],
    [
        signs_in => sub {
            my ($key, $value) = @_;
            sub { $_[0]{$key} = $value; $_[1]{change_id} = 1 }
        }
    ],
    [
        expires => sub {
            sub { $_[2]->expire }
        }
    ],
    [
        expires_only => sub {
            sub { $_[1]{expire} = 1 }
        }
    ],
    [
        nothing => sub {
            sub { }
        }
    ],
);

sub visitors {
    my ($app) = @_;
    return map { Browser->new($app) } 1 .. VISITORS;
}

sub stored {
    my ($cache, $browser) = @_;
    my $id = $browser->{cookie}{plack_session};
    defined $id ? $cache->{item}{$id} : undef;
}

for my $keep_empty (1, 0) {
    my %cache = map { $_ => CountingCache->new } qw(theirs ours);
    my $state = Plack::Session::State::Cookie->new;
    my %browsers = (
        theirs => [
            visitors(
                Plack::Middleware::Session->wrap(
                    \&application,
                    state => $state,
                    store => Plack::Session::Store::Cache->new(cache => $cache{theirs})
                )
            )
        ],
        ours => [
            visitors(
                Plack::Middleware::Session::Kirin->wrap(
                    \&application,
                    state      => $state,
                    store      => Plack::Session::Store::Cache->new(cache => $cache{ours}),
                    keep_empty => $keep_empty
                )
            )
        ],
    );
    my $different = 0;
    for my $round (1 .. ROUNDS) {
        my $visitor = int rand VISITORS;
        my ($name, $make) = @{ $ACTIONS[rand @ACTIONS] };
        my @arguments = ($NAMES[rand @NAMES], int rand 5);
        my (%seen, %stored, %forged);
        my $forge = rand() < 0.05 ? ('f', '0' x 40, "x\n")[rand 3] : undef;
        for my $side (qw(theirs ours)) {
            my $browser = $browsers{$side}[$visitor];
            $browser->{cookie}{plack_session} = $forge if defined $forge;
            $what = $make->(@arguments);
            $seen{$side} = $browser->get('/');
            # No session and an empty one are the same for an application.
            $stored{$side} = stored($cache{$side}, $browser) // {};
        }
        next if $seen{theirs} eq $seen{ours} && Test::More::eq_hash($stored{theirs}, $stored{ours});
        diag "round $round, visitor $visitor $name(@arguments): ", explain(\%seen, \%stored);
        last if ++$different > 3;
    }
    is $different, 0, ROUNDS . " requests with keep_empty $keep_empty";
    my %count;
    for my $side (qw(theirs ours)) {
        $count{$side} = @{ $cache{$side}{calls} };
    }
    cmp_ok $count{ours}, '<', $count{theirs},
        "calls of the store: $count{ours} instead of $count{theirs}";
}

subtest 'one takes over from the other' => sub {
    my $cache = CountingCache->new;
    my $key = 'plack_session';
    my $theirs = Plack::Middleware::Session->wrap(
        \&application,
        store => Plack::Session::Store::Cache->new(cache => $cache)
    );
    my $ours = Plack::Middleware::Session::Kirin->wrap(
        \&application, store => $cache,
        cookie_name          => $key
    );
    for my $case ([$theirs, $ours], [$ours, $theirs]) {
        my ($first, $second) = @$case;
        my $browser = Browser->new($first);
        $what = sub { $_[0]{a} = [1, [2]]; $_[0]{b} = 'text' };
        $browser->get('/');
        $browser->{app} = $second;
        $what = sub { $_[0]{c} = 1 };
        is $browser->get('/'), 'a=[1,[2]] b=text', 'the session is read';
        $browser->{app} = $first;
        is $browser->get('/'), 'a=[1,[2]] b=text c=1', 'and back';
    }
};

done_testing;
