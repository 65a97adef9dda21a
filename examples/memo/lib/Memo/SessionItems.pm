package Memo::SessionItems;
use v5.16;
use warnings;

use JSON::PP ();
use List::Util qw(max min);

# Copies of sessions in the store, under the cookie's token, for pages that Kirin puts together without a worker:
# {"name":…,"user_id":…,"csrf_token":…}. The truth is the database (Memo::Sessions). A copy may be missing, then the page asks
# the application for what differs, which writes it again. But a copy must not outlive its session:
#
#  - It is written inside the database's write lock, if the session is still there. Signing out deletes the row first and
#    the copy then; so either the writer sees that the row is gone, or its copy is there before it is deleted.
#  - A copy that cannot be deleted, because the store is away, is deleted before this process answers the next request.
#    What is left is a process that dies just then: the copy has a short life.
my $LIFETIME_SECS = 600;

my $JSON = JSON::PP->new->utf8->canonical;

# database, store (a Memo::StoreClient).
sub new {
    my ($class, %given) = @_;
    return bless {%given}, $class;
}

# The session was seen in the database. "find" looks again, under the lock: to what is to be in the copy, or nothing.
sub keep {
    my ($self, $token, $expires_at, $find) = @_;
    return if !$self->{store}->is_used;
    # True: it is there, and lives on. False: it is not. Undefined: no answer.
    my $is_there = $self->{store}->client->touch($token, _lifetime($expires_at));
    return if !defined $is_there || $is_there;
    $self->_write($token, $find);
    return;
}

# A session that has just begun.
sub begin {
    my ($self, $token, $find) = @_;
    $self->_write($token, $find) if $self->{store}->is_used;
    return;
}

# The session has ended: its row is gone.
sub forget {
    my ($self, $token) = @_;
    $self->{store}->delete_surely($LIFETIME_SECS, $token);
    return;
}

# At least a second: 0 would be for ever.
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
    # It is only a copy: whatever went wrong with it must not spoil the answer.
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
