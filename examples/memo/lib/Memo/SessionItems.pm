package Memo::SessionItems;
use v5.16;
use warnings;

use JSON::PP ();
use List::Util qw(max min);

# Copies of sessions in the store, under the cookie's token, for pages that Kirin builds without a
# worker: {"name":…,"user_id":…,"csrf_token":…}. The sessions themselves are in the database
# (Memo::Sessions). If a copy is missing, the page asks the application for the visitor's part,
# which writes the copy again. But a copy must not live longer than its session:
#
# - It is written inside the database's write lock, if the session still exists. Signing out first
#   deletes the row and then the copy. So either the writer sees that the row is gone, or its copy
#   is there before it is deleted.
# - If a copy cannot be deleted, because the store is away, this process deletes it before it
#   answers the next request. One case is left: a process that dies in this time. For that the copy
#   has a short life.
my $LIFETIME_SECS = 600;

my $JSON = JSON::PP->new->utf8->canonical;

# Arguments: database, store (a Memo::StoreClient).
sub new {
    my ($class, %given) = @_;
    return bless {%given}, $class;
}

# Runs when the session was seen in the database. "find" looks again, under the lock. It returns the
# content of the copy, or nothing.
sub keep {
    my ($self, $token, $expires_at, $find) = @_;
    return if !$self->{store}->is_used;
    # True: the copy exists, and its life is extended. False: it does not exist. Undefined: no
    # answer.
    my $is_there = $self->{store}->client->touch($token, _lifetime($expires_at));
    return if !defined $is_there || $is_there;
    $self->_write($token, $find);
    return;
}

# Runs for a session that has just started.
sub begin {
    my ($self, $token, $find) = @_;
    $self->_write($token, $find) if $self->{store}->is_used;
    return;
}

# Runs when the session has ended and its row is gone.
sub forget {
    my ($self, $token) = @_;
    $self->{store}->delete_surely($LIFETIME_SECS, $token);
    return;
}

# At least a second, because 0 would mean for ever.
sub _lifetime { return max(1, min($LIFETIME_SECS, $_[0] - time)) }

sub _write {
    my ($self, $token, $find) = @_;
    my $done = eval {
        $self->{database}->exclusively(
            sub {
                my $session = $find->() or return;
                my $lifetime = _lifetime(delete $session->{expires_at});
                $self->{store}->client->set($token, $JSON->encode($session), $lifetime);
            }
        );
        1;
    };
    # It is only a copy. A failure to store it must not affect the response.
    warn "session item: $@" if !$done;
    return;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::SessionItems - copies of sessions in Kirin's store

=head1 SYNOPSIS

    my $items = Memo::SessionItems->new(database => $database, store => $store);
    $items->begin($token, sub { { name => 'mari', user_id => 7, csrf_token => '…', expires_at => 1_800_000_000 } });
    $items->forget($token);

=cut
