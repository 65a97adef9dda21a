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

our $VERSION = $Kirin::Worker::VERSION;

my @COOKIE_ATTRIBUTES = qw(path domain expires secure httponly samesite);
my %OPTION = map { $_ => 1 } @COOKIE_ATTRIBUTES,
    qw(app store state cookie_name session_key keep_empty sid_generator sid_validator serializer ttl);

# A number below this is a duration, as for Plack::Session::State::Cookie; above it a date, as for Cookie::Baker.
use constant EARLIEST_DATE => 1_000_000_000;

# How often a session is merged with what other requests have written, before this one gives up. Each time, one of them has
# succeeded.
use constant MERGES => 100;

# As many random bits as the SHA-1 that these ids look like.
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

# 40 hexadecimal digits that nobody can guess. There is no second best source: a session id that can be guessed is worse
# than an error.
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

# The id that the client has sent, if it can be one.
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

# For Kirin::Session: the content of a session that is there.
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
        # A store that is away must not cost anybody their session.
        $session->{is_lost} = 1 if $self->has_failed($session->{env}, 'session is not read');
        return;
    }
    if ($self->{serializer}) {
        $value = eval { $self->{serializer}[1]->($value) };
        $self->log($session->{env}, "session is not read: $@") if !defined $value && $@;
    }
    # Whatever else is under this key is no session.
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
    # The application has not looked at it, and the client has one or is not to get one.
    my $has_attributes = grep { exists $options->{$_} } @COOKIE_ATTRIBUTES;
    my $is_asked_for = $session->is_touched || $options->{change_id} || $has_attributes;
    return if !$is_asked_for && (defined $cookie || !$self->{keep_empty});
    $session->load if !$session->is_touched;
    return if $session->{is_lost};

    my $is_kept =
        !$session->is_new || !$session->is_empty || $self->{keep_empty} || $session->{id_was_read};
    return if !$is_kept;
    if ($options->{no_store}) {
        # A client is not told of what there will not be.
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

# Writes what is to be written. Returns whether the store has the session.
sub commit {
    my ($self, $session, $old_id) = @_;
    my ($store, $ttl) = @$self{qw(store ttl)};
    # It may be gone when this runs at the end.
    my $env = $session->{env};
    if (!$session->is_new && $self->{has_cas} && defined $session->{unique}) {
        return $self->move($session, $old_id) if defined $old_id;
        return $self->update($session)
            if $session->is_changed && $session->{id} eq $session->{cookie};
    }
    if ($session->is_new || defined $old_id || $session->is_changed) {
        $store->set($session->{id}, $self->serialized($session), $ttl // ());
        # With the old one gone as well there would be none.
        return 0 if $self->has_failed($env, 'session is not stored');
        $self->remove($env, $old_id) if defined $old_id;
    }
    elsif (defined $ttl && $store->can('touch')) {
        $store->touch($session->{id}, $ttl);
        $self->has_failed($env, 'session is not touched');
    }
    return 1;
}

# Writes a session that was there when this request has read it. One that has been removed since (the visitor has signed out,
# its id has changed) stays removed. What other requests have changed since is kept.
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

# Gives a session another id. The old one goes only in the state in which it has been copied, so that what other requests write
# until then is not lost, and one that ends meanwhile does not live on under the new id.
sub move {
    my ($self, $session, $old_id) = @_;
    my ($env, $store) = ($session->{env}, $self->{store});
    for (1 .. MERGES) {
        $store->set($session->{id}, $self->serialized($session), $self->{ttl} // ());
        # With the old one gone as well there would be none.
        return 0 if $self->has_failed($env, 'session is not stored');
        # A caches' remove looks at no number: what is stored for a second is nobody's session.
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

# Merges what another request has stored into this one. False if there is no session any more.
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

# Whether the store has failed, if it is one that tells.
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
    # What the application has set itself is a date.
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

A session middleware with the interface of L<Plack::Middleware::Session> (C<psgix.session>, C<psgix.session.options>,
L<Plack::Session>) and the options of Plack::Middleware::Session::Simple. What it stores is what both store, under the same
keys, so that it can take their place while sessions are alive.

=over

=item *

The store is asked when the application looks at the session or at its id, and not before. A request that does not look
costs no round trip.

=item *

The session is written when it has changed, at any depth. Reading does not write.

=item *

With a store that has C<gets> and C<cas>, requests of one visitor at the same time are merged, by members of the top level, and a
session that has ended meanwhile is not written again (F<docs/perl.md>).

=item *

C<Set-Cookie> is sent when the client is to know something new: with a new session, a changed id, an end, or when the
application has set an attribute of the cookie for this response.

=item *

Ids are 160 bits from the kernel's random number generator. An id that the store does not know is replaced, and never taken
over from the client.

=item *

When L<Kirin::Store> is away, sessions are empty for this request: nothing is written, no cookie is sent, and the log has a
line. Visitors keep their sessions for when it is back.

=back

=head1 OPTIONS

=over

=item store

An object with C<get>, C<set> and C<remove>, and better C<gets> and C<cas> as well (L<Cache::Memcached::Fast>); or a L<Plack::Session::Store::Cache>, whose cache is taken. Default: a
L<Kirin::Store>, which finds Kirin's store in C<KIRIN_STORE> and keeps sessions as JSON. Note that JSON has no objects;
numbers and strings, lists and hashes come back as they were.

=item ttl

Seconds that a session lives in the store, given to C<set> as the third argument. It begins anew when the session is
written, and if the store has C<touch>, when it is looked at. Default: none is given.

=item keep_empty

Whether a visitor without a session gets an empty one. With 0, a session begins when something is put into it or its id is
looked at (so that an id in a form is good for the next request). Default: 1, as in Session::Simple. With 0, pages for
visitors without a session have no C<Set-Cookie> and may be cached.

A visitor who has the cookie of a session that is gone gets a new one when the application next looks at the session.

=item cookie_name, session_key

Two names for the same. Default: C<simple_session>.

=item path, domain, secure, httponly, samesite

Attributes of the cookie. Default: path C</>.

=item expires

A number of seconds from now, or whatever else L<Cookie::Baker> takes (C<+30d>). The cookie is sent once, so this is
how long a browser keeps a session from its beginning. Default: until the browser is closed.

=item sid_generator, sid_validator

Code that makes an id; a pattern, or code, that an id from a cookie must match. They belong together.

=item serializer

C<[$encode, $decode]>: code that makes the hash into what is stored and back, for caches that store only strings.

=item state

A L<Plack::Session::State::Cookie>, whose settings are taken.

=back

=head1 psgix.session.options

=over

=item id

The session's id. To look at it is to look at the session.

=item change_id

Set it, and the session gets a new id. Do this when somebody signs in, so that an id known before is worth nothing.

=item expire

Set it, and the session and its cookie end.

=item no_store

Set it, and nothing is written.

=item late_store

Set it, and the session is written after the response: for changes in streamed bodies.

=item path, domain, expires, secure, httponly, samesite

For the cookie of this response, which is then sent. C<expires> is a date here.

=back

=cut
