use v5.16;
use warnings;
use lib 't/lib';
use Browser;
use CountingCache;
use JSON::PP ();
use Plack::Builder;
use Plack::Middleware::Session::Kirin;
use Test::More;
use UnreadableStore;

# An application whose behaviour is the code that was set last.
my $code;

sub site {
    my ($cache, @options) = @_;
    my $app = Plack::Middleware::Session::Kirin->wrap(
        sub {
            my $env = shift;
            my $result = $code->($env->{'psgix.session'}, $env->{'psgix.session.options'}, $env);
            return ref $result ? $result : [200, ['Content-Type' => 'text/plain'], [$result // '']];
        },
        store => $cache, @options,
    );
    return Browser->new($app);
}

sub does(&) { $code = shift }

subtest 'the store and the cookie are left alone until the session is used' => sub {
    my $cache = CountingCache->new;
    my $browser = site($cache, keep_empty => 0);
    does { 'nothing' };
    $browser->get('/');
    is $cache->calls, '', 'a visitor without a session: no call';
    is_deeply $browser->{sent}, [], 'no cookie';

    does { $_[0]{user} // 'nobody' };
    is $browser->get('/'), 'nobody', 'reading';
    is $cache->calls, '', 'there is nothing to ask the store for';
    is_deeply $browser->{sent}, [], 'no cookie';

    does { $_[0]{user} = 'tama'; $_[0]{count} = 1 };
    $browser->get('/');
    is $cache->calls, 'set', 'a session begins';
    like $browser->{sent}[0], qr{\Asimple_session=[0-9a-f]{40}; path=/\z}, 'with a cookie';

    does { 'nothing' };
    $browser->get('/');
    is $cache->calls, '', 'a visitor with a session: no call';
    is_deeply $browser->{sent}, [], 'and the cookie is not sent again';

    does { "$_[0]{user} $_[0]{count}" };
    is $browser->get('/'), 'tama 1', 'reading';
    is $cache->calls, 'get', 'does not write';

    does { $_[0]{user} = 'tama' };
    $browser->get('/');
    is $cache->calls, 'get', 'nor does writing what is there';

    does { $_[0]{count}++ };
    $browser->get('/');
    is $cache->calls, 'get, set', 'a change is written';
    is_deeply $browser->{sent}, [], 'without a cookie';
    is_deeply [values %{ $cache->{item} }], [{ user => 'tama', count => 2 }],
        'what is stored is the plain hash';
};

subtest 'changes are noticed' => sub {
    my $cache = CountingCache->new;
    my $browser = site($cache);
    does { %{ $_[0] } = (list => [1, { deep => 'x' }], n => 1, text => \'scalar') };
    $browser->get('/');
    $cache->calls;
    for my $case (
        ['reading inside of references', sub { "$_[0]{list}[1]{deep} $_[0]{n}" }, ''],
        ['a number printed', sub { my $text = "$_[0]{list}[0]"; 1 }, ''],
        [
            'all keys',
            sub {
                join ',', map { $_[0]{$_} } keys %{ $_[0] };
            },
            ''
        ],
        ['exists', sub { exists $_[0]{nothing} }, ''],
        ['delete of nothing', sub { delete $_[0]{nothing} }, ''],
        ['a change deep inside', sub { $_[0]{list}[1]{deep} = 'y' }, ', set'],
        ['one more element', sub { push @{ $_[0]{list} }, 2 }, ', set'],
        ['a key deep inside', sub { $_[0]{list}[1]{more} = undef }, ', set'],
        ['undef for text', sub { $_[0]{n} = undef }, ', set'],
        ['delete', sub { delete $_[0]{n} }, ', set'],
        ['local', sub { local $_[0]{text} = 1; 1 }, ', set'],
        ['clear', sub { %{ $_[0] } = () }, ', set'],
        ['clear of nothing', sub { %{ $_[0] } = () }, ''],
        )
    {
        my ($name, $do, $expected) = @$case;
        $code = $do;
        $browser->get('/');
        is $cache->calls, "get$expected", $name;
    }
};

subtest 'an empty session is kept unless that is not wanted' => sub {
    my $cache = CountingCache->new;
    my $browser = site($cache);
    does { 'nothing' };
    $browser->get('/');
    is $cache->calls, 'set', 'stored';
    is @{ $browser->{sent} }, 1, 'with a cookie';

    $browser = site($cache, keep_empty => 0);
    does { $_[0]{x} = 1; delete $_[0]{x}; '' };
    $browser->get('/');
    is $cache->calls, '', 'what was put in and taken out leaves none';
    does { $_[1]{id} };
    my $id = $browser->get('/');
    is $browser->{cookie}{simple_session}, $id, 'an id that was looked at is kept';
    is $browser->get('/'), $id, 'and is the same at the next request';
};

subtest 'ids from clients' => sub {
    my $cache = CountingCache->new;
    my $browser = site($cache);
    my $fixed = 'a' x 40;
    does { $_[0]{x} = 1; $_[1]{id} };
    for my $cookie ($fixed, 'A' x 40, 'a' x 39, "$fixed\n", "../$fixed", '') {
        $browser->{cookie}{simple_session} = $cookie;
        my $id = $browser->get('/');
        isnt $id, $cookie, 'is replaced';
        ok exists $cache->{item}{$id} && !exists $cache->{item}{$cookie},
            'and nothing is stored under it';
        is $browser->{cookie}{simple_session}, $id, 'the client is told';
    }
    my %ids;
    $ids{ Plack::Middleware::Session::Kirin::random_id() }++ for 1 .. 1000;
    is keys %ids, 1000, 'ids differ';
    is_deeply [grep { !/\A[0-9a-f]{40}\z/ } keys %ids], [],
        'and look as those of other session middlewares';

    my @made = qw(one two);
    $browser = site($cache, sid_generator => sub { shift @made }, sid_validator => qr/\A[a-z]+\z/);
    is $browser->get('/'), 'one', 'a generator of its own';
    $cache->calls;
    is $browser->get('/'), 'one', 'with its validator';
    is $cache->calls, 'get', 'lets it pass';

    $cache->{item}{$fixed} = 'not a session';
    $browser = site($cache);
    $browser->{cookie}{simple_session} = $fixed;
    isnt $browser->get('/'), $fixed, 'an item that is no session is none';
};

subtest 'change_id and expire' => sub {
    my $cache = CountingCache->new;
    my $browser = site($cache, keep_empty => 0);
    does { $_[0]{user} = 'tama'; $_[1]{id} };
    my $before = $browser->get('/');
    $cache->calls;
    does { $_[1]{change_id} = 1; '' };
    $browser->get('/');
    is $cache->calls, 'get, set, remove', 'the new one is stored before the old one goes';
    my $after = $browser->{cookie}{simple_session};
    isnt $after, $before, 'another id';
    is_deeply $cache->{item}, { $after => { user => 'tama' } }, 'with the same content';

    does { $_[1]{expire} = 1; '' };
    $browser->get('/');
    is $cache->calls, 'remove', 'the end';
    like $browser->{sent}[0], qr/\Asimple_session=$after; path=\/; expires=/, 'of the cookie too';
    is_deeply $browser->{cookie}, {}, 'the client has none';
    $browser->get('/');
    is_deeply [$cache->calls, @{ $browser->{sent} }], [''],
        'where there is none there is nothing to end';
};

subtest 'a session that is not to be stored' => sub {
    my $cache = CountingCache->new;
    my $browser = site($cache);
    does { $_[0]{x} = 1; $_[1]{no_store} = 1; '' };
    $browser->get('/');
    is_deeply [$cache->calls, @{ $browser->{sent} }], [''], 'is not, and no cookie tells of it';
};

subtest 'the cookie' => sub {
    my $cache = CountingCache->new;
    my $browser = site(
        $cache, session_key => 'sid', path => '/app', domain => 'example.org', secure => 1,
        httponly            => 1,
        samesite            => 'Lax', expires => 3600
    );
    does { '' };
    $browser->get('/');
    my $line = $browser->{sent}[0];
    like $line, qr/\Asid=[0-9a-f]{40}; /, 'name';
    like $line, qr/$_/i, $_ for qw(path=/app domain=example.org secure httponly samesite=lax);
    my ($date) = $line =~ /expires=([^;]+)/;
    my $seconds = HTTP::Date::str2time($date) - time;
    ok $seconds > 3500 && $seconds <= 3600, 'a number is a duration';

    does { $_[1]{expires} = time + 86400; '' };
    $browser->get('/');
    ($date) = $browser->{sent}[0] =~ /expires=([^;]+)/;
    $seconds = HTTP::Date::str2time($date) - time;
    ok $seconds > 86000 && $seconds <= 86400, 'an attribute that the application sets is sent';

    $browser = site($cache, expires => '+1d');
    does { '' };
    $browser->get('/');
    ($date) = $browser->{sent}[0] =~ /expires=([^;]+)/;
    $seconds = HTTP::Date::str2time($date) - time;
    ok $seconds > 86000 && $seconds <= 86400, 'what Cookie::Baker understands';
};

subtest 'hashes that the application puts in place of ours' => sub {
    my $cache = CountingCache->new;
    my $browser = site($cache);
    does { $_[2]{'psgix.session'} = { mine => 1 }; '' };
    $browser->get('/');
    is_deeply [values %{ $cache->{item} }], [{ mine => 1 }], 'the session';
    does { $_[2]{'psgix.session.options'} = { expire => 1 }; '' };
    $browser->get('/');
    is_deeply $cache->{item}, {}, 'its options';
};

subtest 'a streamed response' => sub {
    my $cache = CountingCache->new;
    my $browser = site($cache);
    does {
        my ($session) = @_;
        return sub {
            $session->{early} = 1;
            my $writer = $_[0]->([200, []]);
            $session->{late} = 1;
            $writer->write('x');
            $writer->close;
        };
    };
    is $browser->get('/'), 'x', 'the body';
    is_deeply [values %{ $cache->{item} }], [{ early => 1 }], 'is stored with its head';

    my $streaming = $code;
    does { $_[1]{late_store} = 1; $streaming->(@_) };
    $browser = site($cache = CountingCache->new);
    $browser->get('/');
    is_deeply [values %{ $cache->{item} }], [{ early => 1, late => 1 }], 'or after its end';
    my @handlers;
    $browser->get('/', 'psgix.cleanup' => 1, 'psgix.cleanup.handlers' => \@handlers);
    is @handlers, 1, 'by the server, if it does that';
};

subtest 'nothing is left of a request' => sub {
    my $browser = site(CountingCache->new);
    my $gone = 0;
    no warnings 'once';
    local *Kirin::Session::DESTROY = sub { $gone++ };
    does { $_[0]{x}++; "$_[1]{id}" };
    $browser->get('/') for 1 .. 3;
    does { $_[0]{x}++; $_[1]{late_store} = 1; '' };
    $browser->get('/') for 1 .. 3;
    is $gone, 6, 'no session stays in memory';
};

subtest 'a serializer, and times to live' => sub {
    my $cache = CountingCache->new;
    my $json = JSON::PP->new->canonical;
    my $browser = site(
        $cache, ttl => 60,
        serializer  => [sub { $json->encode($_[0]) }, sub { $json->decode($_[0]) }]
    );
    does { $_[0]{a} = [1]; '' };
    $browser->get('/');
    is $cache->calls, 'set 60', 'set with the time';
    is_deeply [values %{ $cache->{item} }], ['{"a":[1]}'], 'what is stored is text';
    does { "@{ $_[0]{a} }" };
    is $browser->get('/'), '1', 'and comes back as it was';
    $_ = 'broken' for values %{ $cache->{item} };
    does { $_[0]{a} // 'none' };
    is $browser->get('/'), 'none', 'what cannot be read is no session';
    like ${ $browser->{log} }, qr/session is not read/, 'the log has a line';
};

subtest 'a session that is looked at lives on' => sub {
    no warnings 'once';
    local *CountingCache::touch = sub { push @{ $_[0]{calls} }, "touch $_[2]"; 1 };
    my $now = 1000;
    no warnings 'redefine';
    local *Time::HiRes::clock_gettime = sub { $now };
    my $cache = CountingCache->new;
    my $browser = site($cache, ttl => 60);
    does { $_[0]{a} = 1; '' };
    $browser->get('/');
    $cache->calls;
    does { $_[0]{a} };
    $browser->get('/') for 1 .. 5;
    is join(', ', grep { $_ ne 'get' } split /, */, $cache->calls), 'touch 60',
        'but a worker touches it once within a tenth of its life';
    $now += 5.9;
    $browser->get('/');
    unlike $cache->calls, qr/touch/, 'just before';
    $now += 0.2;
    $browser->get('/');
    like $cache->calls, qr/touch 60/, 'and after that';
};

subtest 'a session that cannot be read is not replaced' => sub {
    my $store = UnreadableStore->new;
    my $browser = site($store);
    my $id = 'b' x 40;
    $browser->{cookie}{simple_session} = $id;
    does { $_[0]{n}++; $_[1]{change_id} = 1; '' };
    $browser->get('/');
    is_deeply [@{ $store->{done} }, @{ $browser->{sent} }], [],
        'nothing is written, and the client keeps its cookie';
    like ${ $browser->{log} }, qr/session is not read: no answer/, 'the log has a line';
    does { my @keys = keys %{ $_[0] }; $_[1]{expire} = 1; '' };
    $browser->get('/');
    is_deeply $store->{done}, ["remove $id"], 'but it can be ended';
    is_deeply $browser->{cookie}, {}, 'with its cookie';
};

subtest 'arguments that cannot be' => sub {
    for my $options (
        [store => {}], [store => CountingCache->new, coookie_name => 'x'],
        [state => 'URI']
        )
    {
        ok !eval {
            Plack::Middleware::Session::Kirin->wrap(sub { }, @$options);
            1;
        }, "@$options";
        like $@, qr/\ASession::Kirin: /, 'are refused';
    }
};

subtest 'enable in a builder' => sub {
    my $cache = CountingCache->new;
    my $app = builder {
        enable 'Session::Kirin', store => $cache;
        sub { [200, [], [$_[0]{'psgix.session'}{n}++ || 0]] };
    };
    my $browser = Browser->new($app);
    is join(' ', map { $browser->get('/') } 1 .. 3), '0 1 2', 'counts';
};

done_testing;
