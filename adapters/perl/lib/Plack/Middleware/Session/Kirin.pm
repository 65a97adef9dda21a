package Plack::Middleware::Session::Kirin;
use v5.16;
use warnings;

use parent 'Plack::Middleware';
use Carp ();
use Cookie::Baker ();
use Kirin::Session;
use Kirin::Session::AtEnd;
use Kirin::Store;
use Kirin::Worker;
use Plack::Util;
use Scalar::Util ();
use Time::HiRes ();

our $VERSION = $Kirin::Worker::VERSION;

my @COOKIE_ATTRIBUTES = qw(path domain expires secure httponly samesite);
my %OPTION = map { $_ => 1 } @COOKIE_ATTRIBUTES,
    qw(app store state cookie_name session_key keep_empty sid_generator sid_validator serializer ttl);

# A number below this is a duration, as for Plack::Session::State::Cookie. Above it is a date, as
# for Cookie::Baker.
use constant EARLIEST_DATE => 1_000_000_000;

# How often a session is merged with the writes of other requests before this one gives up. Each
# time, another request has succeeded.
use constant MERGES => 100;

# The most sessions of which a worker remembers when it has touched them.
use constant MOST_TOUCHED => 10_000;

# These ids have as many random bits as the SHA-1 whose form they have.
use constant ID_BYTES => 20;

sub prepare_app {
    my $self = shift;
    if (my @unknown = grep { !$OPTION{$_} } keys %$self) {
        Carp::croak("Session::Kirin: unknown option @unknown");
    }
    if (my $state = $self->{state}) {
        Scalar::Util::blessed($state) && $state->isa('Plack::Session::State::Cookie')
            or Carp::croak('Session::Kirin: state can only be a Plack::Session::State::Cookie');
        $self->{$_} //= $state->$_
            for @COOKIE_ATTRIBUTES, qw(session_key sid_generator sid_validator);
    }
    $self->{store} //= Kirin::Store->new;
    if (Scalar::Util::blessed($self->{store})
        && $self->{store}->isa('Plack::Session::Store::Cache'))
    {
        $self->{store} = $self->{store}->cache;
    }
    for my $method (qw(get set remove)) {
        Scalar::Util::blessed($self->{store}) && $self->{store}->can($method)
            or Carp::croak('Session::Kirin: store must be an object with get, set and remove');
    }
    $self->{has_cas} = !grep { !$self->{store}->can($_) } qw(gets cas);
    $self->{cookie_name} //= delete $self->{session_key} // 'simple_session';
    $self->{keep_empty} //= 1;
    $self->{path} //= '/';
    $self->{sid_generator} //= \&random_id;
    $self->{sid_validator} //= qr/\A[0-9a-f]{40}\z/;
}

# Returns 40 hexadecimal digits that nobody can guess. There is no fallback, because a session id
# that can be guessed is worse than an error.
sub random_id {
    open my $random, '<:raw', '/dev/urandom' or die "/dev/urandom: $!\n";
    my $count = sysread $random, my $bytes, ID_BYTES;
    ($count // 0) == ID_BYTES or die "/dev/urandom: too few bytes\n";
    return unpack 'H*', $bytes;
}

sub call {
    my ($self, $env) = @_;
    my $session = Kirin::Session->new($self, $self->cookie_of($env));
    $session->{env} = $env;
    Scalar::Util::weaken($session->{env});
    $env->{'psgix.session'} = $session->hash;
    $env->{'psgix.session.options'} = $session->options_hash;
    return $self->response_cb($self->app->($env), sub { $self->finalize($env, $_[0], $session) });
}

# Returns the id from the client, if it is valid.
sub cookie_of {
    my ($self, $env) = @_;
    my $cookies = $env->{HTTP_COOKIE};
    return if !defined $cookies || index($cookies, $self->{cookie_name}) < 0;
    my $id = Cookie::Baker::crush_cookie($cookies)->{ $self->{cookie_name} };
    return if !defined $id;
    my $validator = $self->{sid_validator};
    return (ref $validator eq 'CODE' ? $validator->($id) : $id =~ $validator) ? $id : undef;
}

# For Kirin::Session.
sub generate_id {
    my $self = shift;
    return $self->{sid_generator}->();
}

# For Kirin::Session: returns the content of an existing session.
sub fetch {
    my ($self, $session, $id) = @_;
    my $value;
    if ($self->{has_cas}) {
        (my $unique, $value) = @{ $self->{store}->gets($id) // [] };
        $session->{unique} = $unique;
    }
    else {
        $value = $self->{store}->get($id);
    }
    if (!defined $value) {
        # A visitor must not lose the session because the store is away.
        $session->{is_lost} = 1 if $self->has_failed($session->{env}, 'session is not read');
        return;
    }
    if ($self->{serializer}) {
        $value = eval { $self->{serializer}[1]->($value) };
        $self->log($session->{env}, "session is not read: $@") if !defined $value && $@;
    }
    # Any other value under this key is not a session.
    return Kirin::Session::is_hash($value) ? $value : undef;
}

sub finalize {
    my ($self, $env, $response, $session) = @_;
    $session->take_replaced(@$env{qw(psgix.session psgix.session.options)});
    my $options = $session->{options};
    my $cookie = $session->{cookie};

    if ($options->{expire}) {
        my $id = $session->is_touched ? $session->{id} : $cookie;
        $self->remove($env, $id) if defined $id && !$session->is_new;
        $self->send_cookie($response, $cookie // $id, $options, expires => 'now')
            if defined($cookie // $id);
        return;
    }
    # The application has not looked at the session, and the client has one or must not get one.
    my $has_attributes = grep { exists $options->{$_} } @COOKIE_ATTRIBUTES;
    my $is_asked_for = $session->is_touched || $options->{change_id} || $has_attributes;
    return if !$is_asked_for && (defined $cookie || !$self->{keep_empty});
    $session->load if !$session->is_touched;
    return if $session->{is_lost};

    my $is_kept =
        !$session->is_new || !$session->is_empty || $self->{keep_empty} || $session->{id_was_read};
    return if !$is_kept;
    if ($options->{no_store}) {
        # The client must not get the id of a session that will not exist.
        $self->send_cookie($response, $session->{id}, $options)
            if $has_attributes && !$session->is_new;
        return;
    }
    my $old_id;
    if ($options->{change_id} && !$session->is_new) {
        $old_id = $session->{id};
        $session->{id} = $self->generate_id;
    }
    my $commit = sub { $self->commit($session, $old_id) };
    if (!$options->{late_store}) {
        $commit->() or return;
    }
    elsif ($env->{'psgix.cleanup'}) {
        push @{ $env->{'psgix.cleanup.handlers'} }, $commit;
    }
    else {
        $env->{'psgix.session.cleanup'} = Kirin::Session::AtEnd->new($commit);
    }
    $self->send_cookie($response, $session->{id}, $options)
        if $session->is_new || defined $old_id || $has_attributes;
}

# Writes the session if needed. Returns whether the store has it.
sub commit {
    my ($self, $session, $old_id) = @_;
    my ($store, $ttl) = @$self{qw(store ttl)};
    # The environment may be gone when this runs at the end.
    my $env = $session->{env};
    if (!$session->is_new && $self->{has_cas} && defined $session->{unique}) {
        return $self->move($session, $old_id) if defined $old_id;
        return $self->update($session)
            if $session->is_changed && $session->{id} eq $session->{cookie};
    }
    if ($session->is_new || defined $old_id || $session->is_changed) {
        $store->set($session->{id}, $self->serialized($session), $ttl // ());
        # If the old one were removed as well, there would be none.
        return 0 if $self->has_failed($env, 'session is not stored');
        $self->remove($env, $old_id) if defined $old_id;
    }
    elsif (defined $ttl && $store->can('touch') && $self->is_touch_due($session->{id})) {
        $store->touch($session->{id}, $ttl);
        delete $self->{touched}{ $session->{id} }
            if $self->has_failed($env, 'session is not touched');
    }
    return 1;
}

# Returns whether the life of a session must start again. If this worker has done it within the last
# tenth of that life, it need not: where several machines share the store, each touch is a write.
sub is_touch_due {
    my ($self, $id) = @_;
    my $now = Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC());
    my $touched = $self->{touched} //= {};
    my $last = $touched->{$id};
    return 0 if defined $last && $now - $last < $self->{ttl} / 10;
    %$touched = () if keys %$touched >= MOST_TOUCHED;
    $touched->{$id} = $now;
    return 1;
}

# Writes a session that existed when this request has read it. A session that has been removed since
# stays removed, because the visitor has signed out or its id has changed. Changes of other requests
# since then stay.
sub update {
    my ($self, $session) = @_;
    my ($env, $id) = @$session{qw(env id)};
    for (1 .. MERGES) {
        return 1
            if $self->{store}
            ->cas($id, $session->{unique}, $self->serialized($session), $self->{ttl} // ());
        return 0 if $self->has_failed($env, 'session is not stored');
        $self->reread($session, $id) or return 0;
    }
    $self->log(
        $env,
        "session is not stored: other requests have written it ${\ MERGES} times meanwhile"
    );
    return 0;
}

# Gives a session another id. It removes the old session only in the state in which it was copied.
# So writes of other requests until then are not lost, and a session that ends in this time does not
# continue under the new id.
sub move {
    my ($self, $session, $old_id) = @_;
    my ($env, $store) = ($session->{env}, $self->{store});
    for (1 .. MERGES) {
        $store->set($session->{id}, $self->serialized($session), $self->{ttl} // ());
        # If the old one were removed as well, there would be none.
        return 0 if $self->has_failed($env, 'session is not stored');
        # A cache's remove checks no number. A value that is stored for a second is not a session.
        if ($store->cas($old_id, $session->{unique}, $self->{serializer} ? '' : 'moved', 1)) {
            $self->remove($env, $old_id);
            return 1;
        }
        last if $self->has_failed($env, 'session is not removed');
        next if $self->reread($session, $old_id);
        last;
    }
    $self->remove($env, $session->{id});
    return 0;
}

# Merges the content that another request has stored into this session. Returns false if there is no
# session any more.
sub reread {
    my ($self, $session, $id) = @_;
    my $theirs = $self->fetch($session, $id) // return 0;
    $session->merge_into($theirs);
    return 1;
}

sub serialized {
    my ($self, $session) = @_;
    return $self->{serializer} ? $self->{serializer}[0]->($session->content) : $session->content;
}

sub remove {
    my ($self, $env, $id) = @_;
    $self->{store}->remove($id);
    $self->has_failed($env, 'session is not removed');
}

# Returns whether the store has failed, if the store can report that.
sub has_failed {
    my ($self, $env, $what) = @_;
    my $store = $self->{store};
    my $error = $store->isa('Kirin::Store') ? $store->error : undef;
    return 0 if !defined $error;
    $self->log($env, "$what: $error");
    return 1;
}

sub log {
    my ($self, $env, $message) = @_;
    $message =~ s/\n\z//;
    my $errors = $env && $env->{'psgi.errors'} || \*STDERR;
    # An application may have closed or tied them.
    eval { $errors->print("Session::Kirin: $message\n") };
    return;
}

sub send_cookie {
    my ($self, $response, $id, $options, @overriding) = @_;
    my %cookie = (value => $id);
    for my $name (@COOKIE_ATTRIBUTES) {
        my $value = exists $options->{$name} ? $options->{$name} : $self->{$name};
        $cookie{$name} = $value if defined $value;
    }
    # A value that the application has set itself is a date.
    if (   !exists $options->{expires}
        && ($cookie{expires} // '') =~ /\A[0-9]+\z/
        && $cookie{expires} < EARLIEST_DATE)
    {
        $cookie{expires} += time;
    }
    my $line = Cookie::Baker::bake_cookie($self->{cookie_name}, { %cookie, @overriding });
    Plack::Util::header_push($response->[1], 'Set-Cookie', $line);
}

1;

__END__

=head1 NAME

Plack::Middleware::Session::Kirin - sessions that cost nothing until they are used

=head1 SYNOPSIS

    use Plack::Builder;
    builder {
        enable 'Session::Kirin', keep_empty => 0, ttl => 86400, httponly => 1, samesite => 'Lax';
        sub {
            my $env     = shift;
            my $session = $env->{'psgix.session'};
            $session->{visits}++ if $env->{PATH_INFO} eq '/visit';
            return [200, ['Content-Type' => 'text/plain'], ["ok"]];
        };
    };

=head1 DESCRIPTION

This is a session middleware with the interface of L<Plack::Middleware::Session> (C<psgix.session>,
C<psgix.session.options>, L<Plack::Session>) and the options of Plack::Middleware::Session::Simple.
It stores the same data as both, under the same keys. So it can replace them while sessions are
alive.

=over

=item *

The middleware asks the store when the application looks at the session or its id, and not before. A
request that does not look costs no round trip.

=item *

It writes the session when it has changed, at any depth. Reading does not write.

=item *

With a store that has C<gets> and C<cas>, it merges the writes of one visitor's requests at the same
time, by members of the top level. It does not write a session again that has ended in the meantime
(F<docs/perl.md>).

=item *

It sends C<Set-Cookie> when the client needs new information: with a new session, a changed id, an
end, or when the application has set an attribute of the cookie for this response.

=item *

Ids are 160 bits from the kernel's random number generator. An id that the store does not know is
replaced, and never accepted from the client.

=item *

When L<Kirin::Store> is away, sessions are empty for this request. Nothing is written, no cookie is
sent, and the log has a line. Visitors still have their sessions when the store is back.

=back

=head1 OPTIONS

=over

=item store

An object with C<get>, C<set> and C<remove>, and preferably C<gets> and C<cas> as well
(L<Cache::Memcached::Fast>); or a L<Plack::Session::Store::Cache>, whose cache is used. Default:
L<Kirin::Store>, which finds Kirin's store in C<KIRIN_STORE> and keeps sessions as JSON. JSON has no
objects. Numbers and strings, lists and hashes come back as they were.

=item ttl

How long a session lives in the store, in seconds. C<set> gets it as the third argument. The time
starts again when the session is written and, if the store has C<touch>, when it is looked at. A
worker does the latter once in a tenth of this time. Default: none is given.

=item keep_empty

Whether a visitor without a session gets an empty one. With 0, a session starts when the application
puts data into it or looks at its id (so that an id in a form is valid for the next request).
Default: 1, as in Session::Simple. With 0, pages for visitors without a session have no
C<Set-Cookie> and may be cached.

A visitor with the cookie of a session that is gone gets a new one when the application next looks
at the session.

=item cookie_name, session_key

Two names for the same option. Default: C<simple_session>.

=item path, domain, secure, httponly, samesite

Attributes of the cookie. Default: path C</>.

=item expires

A number of seconds from now, or any other value that L<Cookie::Baker> accepts (C<+30d>). The cookie
is sent once. So this is how long a browser keeps a session from its start. Default: until the
browser is closed.

=item sid_generator, sid_validator

Code that makes an id; a pattern, or code, that an id from a cookie must match. They belong
together.

=item serializer

C<[$encode, $decode]>: code that converts the hash to the stored value and back, for caches that
store only strings.

=item state

A L<Plack::Session::State::Cookie>, whose settings are used.

=back

=head1 psgix.session.options

=over

=item id

The session's id. Reading it counts as looking at the session.

=item change_id

If it is set, the session gets a new id. Set it when a visitor signs in, so that an id known before
becomes worthless.

=item expire

If it is set, the session and its cookie end.

=item no_store

If it is set, nothing is written.

=item late_store

If it is set, the session is written after the response: for changes in streamed bodies.

=item path, domain, expires, secure, httponly, samesite

For the cookie of this response, which is then sent. C<expires> is a date here.

=back

=cut
