package Memo::PageStore;
use v5.16;
use warnings;

use Time::HiRes ();

# The public pages in the store, kept right.
#
# Kirin answers a request from the store item whose key is the request's path, so the one rule is: an item may
# be missing (then the application answers), but it must never stay behind the database. The order of events
# that would break it: process A reads the memos and renders "/"; B adds a memo and removes "/" from the store; A
# stores its "/". Now the old page is served for good. A memcached "cas" does not help A: when the
# page was missing there is no cas number to hold on to. So:
#
#  1. Every public page has a version, the number of public memos it was rendered from (Memo::Memos numbers them
#     without a hole; nothing else changes a public page). It comes from the same database snapshot as the page.
#  2. All writes to the store happen inside the database's write lock (BEGIN IMMEDIATE), so they come one after
#     the other and nobody commits between them; "push" stores a page only if its version still is the
#     current one. A stale page is thrown away.
#  3. Whoever adds a memo commits first and then settles (a push begins with that): removes every page that the
#     memo changed. A push before the commit is thus removed; a push after it is refused by its version.
#
# What is left is the time between commit and settle (the writer has no answer yet), and a process that dies
# or cannot reach the store just there. For that the store carries the LEDGER item: up to which public memo
# its pages are settled. settle starts from there, not from "my memo": every settle and every push makes
# good what another process left. A missing or foreign ledger (store restarted, restored from an old snapshot,
# another database, other templates) means: nothing in it can be trusted, remove every page we may have stored.

my $LEDGER = 'memo/ledger';
my $PAGE_HEAD = "text/html; charset=UTF-8\r\n";
my $KEYS_AT_ONCE = 1_000;
my $RETRY_AFTER_SECS = 1;
# The net below the net. One case is left: a "set" that this side gave up on after io_timeout, and that a stalled
# store carries out after another process's "settle".
my $PAGE_LIFETIME_SECS = 600;

# database, memos; store (a Memo::StoreClient); identity (of pages that may share a
# store's life); keys_changed (code: from a number of public memos, or undef for all, to the keys); fragments
# (code: to a hash of key to value, current under the lock).
sub new {
    my ($class, %given) = @_;
    return bless { %given, pid => 0, is_settled => 0, next_try => 0 }, $class;
}

sub is_used { return $_[0]{store}->is_used }

# What this object knows, it knows of its own process.
sub _client {
    my ($self) = @_;
    @{$self}{qw(pid is_settled next_try)} = ($$, 0, 0) if $self->{pid} != $$;
    return $self->{store}->client;
}

# Before a request is answered: what this process could not settle yet, it tries again. Also the
# first thing a new process does, so a worker that was killed between commit and settle is made good by the next.
sub catch_up {
    my ($self) = @_;
    return if !$self->is_used;
    $self->_client;
    return if $self->{is_settled} || Time::HiRes::time() < $self->{next_try};
    $self->settle;
    return;
}

# After a commit that changed public pages. True when the store now has nothing older than that commit.
sub settle {
    my ($self) = @_;
    return 0 if !$self->is_used;
    return $self->_locked(sub { 1 });
}

# Stores a page rendered from $version public memos, unless it is not the newest any more.
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

# Runs the code with the number of public memos, under the lock and with the store settled; else false.
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
    # The page is only a copy: whatever went wrong with it must not spoil the answer.
    warn "page store: $@" if !$done;
    $self->{is_settled} = 0 if !$done;
    $self->{next_try} = Time::HiRes::time() + $RETRY_AFTER_SECS if !$self->{is_settled};
    return $result;
}

sub _settle_to {
    my ($self, $client, $current) = @_;
    my $identity = $self->{identity}->();
    my @keys = @{ $self->{fragment_keys} };
    # A connection that Kirin closed in the meantime fails once and is then made anew; the client does not tell
    # a failure from a missing item.
    my $have = $client->get_multi($LEDGER, @keys);
    $have = $client->get_multi($LEDGER, @keys) if !defined $have->{$LEDGER};

    my $settled =
        ($have->{$LEDGER} // '') =~ /\A\Q$identity\E (\d+)\z/a && $1 <= $current ? $1 : undef;
    my $is_new = !defined $settled || $settled < $current;

    # Fragments are replaced and never removed: a page that names them may be in the store at any time.
    if ($is_new || grep { !defined $have->{$_} } @keys) {
        my $fragments = $self->{fragments}->();
        for my $key (@keys) {
            return 0 if !$client->set($key, $fragments->{$key});
        }
    }
    return 1 if !$is_new;
    my @gone = $self->{keys_changed}->($settled);
    while (my @some = splice @gone, 0, $KEYS_AT_ONCE) {
        # False is "was not there", undefined is "no answer".
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
