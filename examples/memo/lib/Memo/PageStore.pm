package Memo::PageStore;
use v5.16;
use warnings;

use Time::HiRes ();

# Keeps the public pages in the store correct.
#
# Kirin answers a request with the store item whose key is the request's path. So there is one rule:
# an item may be missing (then the application answers), but it must never be older than the
# database. This order of events would break the rule: process A reads the memos and renders "/". B
# adds a memo and removes "/" from the store. A stores its "/". Now the old page is served for good.
# A memcached "cas" does not help A, because for a missing page there is no cas number. So:
#
# - Every public page has a version: the number of public memos from which it was rendered.
#   (Memo::Memos numbers them without a gap, and nothing else changes a public page.) It comes from
#   the same database snapshot as the page.
# - All writes to the store happen inside the database's write lock (BEGIN IMMEDIATE). So they come
#   one after the other, and no process commits between them. "push" stores a page only if its
#   version is still the current one. It drops a stale page.
# - A process that adds a memo commits first and then settles (a push starts with that): it removes
#   every page that the memo has changed. So a push before the commit is removed, and a push after
#   it is refused by its version.
#
# Two cases are left: the time between commit and settle (the writer has no response yet), and a
# process that dies or cannot reach the store in this time. For these the store has the LEDGER item:
# the last public memo up to which its pages are settled. settle starts from there, not from its own
# memo. So every settle and every push repairs the state that another process left. If the ledger is
# missing or foreign (store restarted, restored from an old snapshot, another database, other
# templates), no page can be trusted. Then all pages that may be stored are removed.

my $LEDGER = 'memo/ledger';
my $PAGE_HEAD = "text/html; charset=UTF-8\r\n";
my $KEYS_AT_ONCE = 1_000;
my $RETRY_AFTER_SECS = 1;
# A last protection. One case is left: a "set" that this side gave up after io_timeout, and that a
# stalled store carries out after another process's "settle".
my $PAGE_LIFETIME_SECS = 600;

# Arguments: database, memos; store (a Memo::StoreClient); identity (of pages that may share a
# store); keys_changed (code: from a number of public memos, or undef for all, to the keys);
# fragments (code: to a hash of key to value, current under the lock).
sub new {
    my ($class, %given) = @_;
    return bless { %given, pid => 0, is_settled => 0, next_try => 0 }, $class;
}

sub is_used { return $_[0]{store}->is_used }

# This state belongs to this process only.
sub _client {
    my ($self) = @_;
    @{$self}{qw(pid is_settled next_try)} = ($$, 0, 0) if $self->{pid} != $$;
    return $self->{store}->client;
}

# Runs before a request is answered. It retries what this process could not settle yet. It is also
# the first action of a new process. So the next worker repairs the state that a killed worker left
# between commit and settle.
sub catch_up {
    my ($self) = @_;
    return if !$self->is_used;
    $self->_client;
    return if $self->{is_settled} || Time::HiRes::time() < $self->{next_try};
    $self->settle;
    return;
}

# Runs after a commit that changed public pages. Returns whether the store now has no page older
# than that commit.
sub settle {
    my ($self) = @_;
    return 0 if !$self->is_used;
    return $self->_locked(sub { 1 });
}

# Stores a page rendered from $version public memos, unless it is no longer the newest.
sub push {
    my ($self, $path, $html, $version) = @_;
    return 0 if !$self->is_used;
    return $self->_locked(
        sub {
            my ($current) = @_;
            return 0 if $version != $current;
            return $self->_client->set($path, $PAGE_HEAD . $html, $PAGE_LIFETIME_SECS) ? 1 : 0;
        }
    );
}

# Runs the code with the number of public memos, under the lock and with the store settled. Returns
# false otherwise.
sub _locked {
    my ($self, $code) = @_;
    my $client = $self->_client;
    my $result = 0;
    my $done = eval {
        $self->{database}->exclusively(
            sub {
                my $current = $self->{memos}->public_total;
                $self->{is_settled} = $self->_settle_to($client, $current);
                $result = $code->($current) if $self->{is_settled};
            }
        );
        1;
    };
    # The page is only a copy. A failure to store it must not affect the response.
    warn "page store: $@" if !$done;
    $self->{is_settled} = 0 if !$done;
    $self->{next_try} = Time::HiRes::time() + $RETRY_AFTER_SECS if !$self->{is_settled};
    return $result;
}

sub _settle_to {
    my ($self, $client, $current) = @_;
    my $identity = $self->{identity}->();
    my @keys = @{ $self->{fragment_keys} };
    # A connection that Kirin has closed fails once and is then made again. The client does not
    # distinguish a failure from a missing item.
    my $have = $client->get_multi($LEDGER, @keys);
    $have = $client->get_multi($LEDGER, @keys) if !defined $have->{$LEDGER};

    my $settled =
        ($have->{$LEDGER} // '') =~ /\A\Q$identity\E (\d+)\z/a && $1 <= $current ? $1 : undef;
    my $is_new = !defined $settled || $settled < $current;

    # Fragments are replaced and never removed, because the store may have a page that names them at
    # any time.
    if ($is_new || grep { !defined $have->{$_} } @keys) {
        my $fragments = $self->{fragments}->();
        for my $key (@keys) {
            return 0 if !$client->set($key, $fragments->{$key});
        }
    }
    return 1 if !$is_new;
    my @gone = $self->{keys_changed}->($settled);
    while (my @some = splice @gone, 0, $KEYS_AT_ONCE) {
        # False means "was not there", undefined means "no answer".
        return 0 if grep { !defined } $client->delete_multi(@some);
    }
    return $client->set($LEDGER, "$identity $current") ? 1 : 0;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::PageStore - the public pages in Kirin's store

=head1 SYNOPSIS

    my $store = Memo::PageStore->new(
        store         => Memo::StoreClient->new('unix:data/store.sock'),
        database      => $database,
        memos         => $memos,
        identity      => sub { 'site and templates' },
        fragment_keys => ['fragment/total'],
        fragments     => sub { { 'fragment/total' => '17' } },
        keys_changed  => sub { my ($since) = @_; ('/', '/recent/0') },
    );
    $store->push('/', $html, $version);
    $store->settle;

=cut
