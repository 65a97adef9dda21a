package Memo::PrivatePages;
use v5.16;
use warnings;

use Encode ();
use Memo::Markdown ();

# Pages that only an author sees: private memos, and the links through them. The store has the parts
# from which lua/private_memo.lua makes the same pages, under keys that nobody can request:
#
# - private/memo/N has the author's id, LF, and the page with comments in place of links and CSRF
#   token.
# - author/ID/public and author/ID/private have the ids of the author's memos, ascending.
#
# Memos do not change, but the lists do. They are written inside the database's write lock, from
# committed data only. A process that adds a memo deletes them inside the lock, before it commits.
# So an existing list is correct, and a process may die at any time. Memo::StoreClient handles a
# list that cannot be deleted because the store is away.
my $LIFETIME_SECS = 600;
my $NEIGHBOURS = '<!--# neighbours -->';
my $CSRF_TOKEN = '<!--# csrf_token -->';

# Arguments: database, memos, view, store (a Memo::StoreClient).
sub new {
    my ($class, %given) = @_;
    return bless {%given}, $class;
}

# Returns the page of a private memo as bytes, for its author.
sub page {
    my ($self, $memo, $csrf_token) = @_;
    my $view = $self->{view};
    my $html = $view->part(
        'private_memo',
        { memo => $memo },
        {
            body        => Memo::Markdown::html($memo->{content}),
            neighbours  => $NEIGHBOURS,
            session_bar => $view->part(
                'session_bar', { user => { name => $memo->{author} } },
                { csrf_token => $CSRF_TOKEN }
            ),
        }
    );
    $self->_keep(
        $memo,
        "private/memo/$memo->{id}" => Encode::encode_utf8("$memo->{user_id}\n$html")
    );
    my %parts = ($NEIGHBOURS => $self->_links($memo), $CSRF_TOKEN => $csrf_token);
    return Encode::encode_utf8($html =~ s/(\Q$NEIGHBOURS\E|\Q$CSRF_TOKEN\E)/$parts{$1}/gr);
}

# Returns the links of any memo as its author sees them, as HTML in text.
sub neighbours {
    my ($self, $memo) = @_;
    $self->_keep($memo);
    return $self->_links($memo);
}

sub _links {
    my ($self, $memo) = @_;
    return $self->{view}->part(
        'neighbours',
        { memo => $memo, neighbours => $self->{memos}->all_neighbours($memo), is_own => 1 }
    );
}

# Runs inside the transaction that adds a memo.
sub author_writes {
    my ($self, $user_id) = @_;
    $self->{store}->delete_surely($LIFETIME_SECS, _lists($user_id));
    return;
}

# Returns all keys that may be in the store.
sub keys_in_store {
    my ($self) = @_;
    my $memos = $self->{memos};
    return ((map { "private/memo/$_" } $memos->private_ids), map { _lists($_) } $memos->author_ids);
}

sub _lists { return ("author/$_[0]/public", "author/$_[0]/private") }

# Stores the lists of the memo's author and the given items, if they are missing.
sub _keep {
    my ($self, $memo, %items) = @_;
    return if !$self->{store}->is_used;
    my ($public, $private) = _lists($memo->{user_id});
    my $client = $self->{store}->client;
    my $have = $client->get_multi($public, $private, keys %items);
    my @missing = grep { !defined $have->{$_} } $public, $private, keys %items or return;
    my $done = eval {
        $self->{database}->exclusively(
            sub {
                @items{ $public, $private } =
                    map { join ' ', @$_ } $self->{memos}->ids_of_author($memo->{user_id});
                $client->set($_, $items{$_}, $LIFETIME_SECS) for @missing;
            }
        );
        1;
    };
    # They are only copies. A failure to store them must not affect the response.
    warn "private pages: $@" if !$done;
    return;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::PrivatePages - what only an author sees, and its way into the store

=head1 SYNOPSIS

    my $private = Memo::PrivatePages->new(database => $database, memos => $memos, view => $view, store => $store);
    my $bytes   = $private->page($memo, $request->csrf_token);
    my $html    = $private->neighbours($memo);

=cut
