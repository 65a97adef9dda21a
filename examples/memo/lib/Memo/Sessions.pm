package Memo::Sessions;
use v5.16;
use warnings;

use Digest::SHA qw(sha256_hex hmac_sha256_hex);
use Memo::ConstantTime ();
use Memo::Random ();

# Sessions are in the database and not in the store. The store may be restarted, may evict items,
# and may be switched off, and that should sign nobody out. The store has copies
# (Memo::SessionItems).
#
# The cookie is a random token that every visitor of a form gets. Only a signed-in visitor's token
# has a row. The CSRF token of a form is a MAC of the cookie's token. So the sign-in form is
# protected too, and nothing has to be kept for visitors who only read.
my $COOKIE = 'memo_session';
my $TOKEN = qr/\A[0-9a-f]{36}\z/;
my $LIFETIME_SECS = 30 * 24 * 3600;

# A cookie for pages from the store. If the copy of the session is missing, it shows that a request
# to the application is useful.
our $HINT_COOKIE = 'memo_signed_in';

# Arguments: database, items (Memo::SessionItems).
sub new {
    my ($class, %given) = @_;
    return bless {%given}, $class;
}

sub token_from_cookies {
    my ($self, $cookies) = @_;
    my $token = $cookies->{$COOKIE} // '';
    return $token =~ $TOKEN ? $token : undef;
}

# Returns the user who is signed in under this token, or nothing.
sub user {
    my ($self, $token) = @_;
    my $session = defined $token ? $self->_find($token) : undef;
    return if !$session;
    $self->{items}->keep($token, $session->{expires_at}, sub { $self->_find($token) });
    return { id => $session->{user_id}, name => $session->{name} };
}

sub _find {
    my ($self, $token) = @_;
    my $session = $self->{database}->handle->selectrow_hashref(
        'SELECT user.id AS user_id, user.name, session.expires_at FROM session JOIN user ON user.id = session.user_id
          WHERE session.token_digest = ? AND session.expires_at > ?',
        undef, sha256_hex($token), time,
    ) or return;
    return { %$session, csrf_token => $self->csrf_token($token) };
}

# Signs the user in under a new token. So a token that an attacker has planted is worthless.
sub start {
    my ($self, $user, $old_token) = @_;
    my $token = Memo::Random::token();
    $self->end($old_token) if defined $old_token;
    $self->{database}->exclusively(
        sub {
            my ($handle) = @_;
            $handle->do('DELETE FROM session WHERE expires_at <= ?', undef, time);
            $handle->do(
                'INSERT INTO session (token_digest, user_id, expires_at) VALUES (?, ?, ?)',
                undef, sha256_hex($token), $user->{id}, time + $LIFETIME_SECS
            );
        }
    );
    $self->{items}->begin($token, sub { $self->_find($token) });
    return $token;
}

sub end {
    my ($self, $token) = @_;
    $self->{database}
        ->handle->do('DELETE FROM session WHERE token_digest = ?', undef, sha256_hex($token));
    $self->{items}->forget($token);
    return;
}

sub csrf_token {
    my ($self, $token) = @_;
    return hmac_sha256_hex($token, $self->{csrf_key} //= $self->{database}->setting('csrf_key'));
}

sub csrf_token_is_right {
    my ($self, $token, $given) = @_;
    return 0 if !defined $token || !defined $given;
    return Memo::ConstantTime::equal($given, $self->csrf_token($token));
}

# Returns Set-Cookie values.
sub cookies_for_form { return _cookie($COOKIE, $_[1], 'HttpOnly', $_[2]) }

sub cookies_for_sign_in {
    return (
        _cookie($COOKIE, $_[1], "Max-Age=$LIFETIME_SECS; HttpOnly", $_[2]),
        _cookie($HINT_COOKIE, 1, "Max-Age=$LIFETIME_SECS; HttpOnly", $_[2]),
    );
}

sub cookies_for_sign_out {
    return (
        _cookie($COOKIE, '', 'Max-Age=0; HttpOnly', $_[1]),
        _cookie($HINT_COOKIE, '', 'Max-Age=0; HttpOnly', $_[1])
    );
}

sub _cookie {
    my ($name, $value, $attributes, $is_https) = @_;
    return "$name=$value; Path=/; SameSite=Lax; $attributes" . ($is_https ? '; Secure' : '');
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Sessions - who is signed in, and CSRF tokens

=head1 SYNOPSIS

    my $sessions = Memo::Sessions->new(database => $database, items => $items);
    my $token    = $sessions->start($user);
    my $user     = $sessions->user($token);
    my $field    = $sessions->csrf_token($token);

=cut
