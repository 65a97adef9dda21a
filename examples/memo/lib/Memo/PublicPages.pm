package Memo::PublicPages;
use v5.16;
use warnings;

use Encode ();
use Memo::Markdown ();
use Memo::Memos ();
use Memo::PageStore ();
use Memo::Sessions ();
use Memo::View ();
use Text::Xslate ();

# The pages for all visitors: /, /recent/N and /memo/N of a public memo. A stored page is the same
# for all visitors. It has comments that Kirin carries out when it serves the page (server side
# includes):
#
# - "include KEY" stands for parts that most pages share and every new memo changes. So a new memo
#   replaces two small items and leaves thousands of pages unchanged.
# - "if" and "echo" of the visitor's session (Memo::SessionItems) are in the bar at the top and, for
#   the links to private neighbours, on a memo's page. "include virtual" asks the application for
#   missing parts.
#
# If a page does not go through the store, "_fill" does the same.
my $TOTAL = 'fragment/total';
my $NEWEST = 'fragment/newest';
my $SESSION_BAR = 'fragment/session-bar';
# Only our templates can write such a comment, because "<" in a memo is always escaped.
my $INCLUDE = qr/<!--# include (\S+) -->/;
my $FOR_AUTHOR =
    qr/<!--# if expr="\$session\.user_id = (\d+)" -->.*?<!--# else -->(.*?)<!--# endif -->/s;

# Arguments: database, memos, view, store (a Memo::StoreClient), and private (Memo::PrivatePages).
sub new {
    my ($class, %given) = @_;
    my $self = bless {%given}, $class;
    my $view = $given{view};
    # The closures do not refer to $self, because $self refers to the store.
    my $parts = { memos => $given{memos}, view => $view };
    $self->{store} = Memo::PageStore->new(
        store    => $given{store},
        database => $given{database},
        memos    => $given{memos},
        identity => sub {
            ($parts->{site} //= $given{database}->setting('site_id')) . '/' . $view->fingerprint;
        },
        fragment_keys => [$TOTAL, $NEWEST, $SESSION_BAR],
        fragments     => sub {
            my $text = _fragments($parts);
            +{ map { $_ => Encode::encode_utf8($text->{$_}) } keys %$text };
        },
        keys_changed => sub { _keys_changed(@given{qw(memos private)}, $_[0]) },
    );
    return $self;
}

sub store { return $_[0]{store} }

# Returns the page as bytes for the response, or nothing if there is no such public page. Stores it
# too. visitor: session_bar (HTML as text), user_id (or none).
sub answer {
    my ($self, $path, $visitor) = @_;
    my ($html, $version, $fragments);
    $self->{database}->snapshot(
        sub {
            $html = $self->render($path) // return;
            $version = $self->{memos}->public_total;
            $fragments = _fragments($self);
        }
    );
    return if !defined $html;
    $self->{store}->push($path, Encode::encode_utf8($html), $version);
    return Encode::encode_utf8($self->_fill($html, $path, $fragments, $visitor));
}

sub _fill {
    my ($self, $html, $path, $fragments, $visitor) = @_;
    my %parts = (%$fragments, $SESSION_BAR => $visitor->{session_bar});
    my $user_id = $visitor->{user_id} // 0;
    return $html =~ s/$FOR_AUTHOR/$1 == $user_id ? $self->_neighbours_of_author($path) : $2/ger =~
        s/$INCLUDE/$parts{$1} \/\/ ''/ger;
}

sub _neighbours_of_author {
    my ($self, $path) = @_;
    return $self->{private}->neighbours($self->{memos}->find($path =~ m{\A/memo/(\d+)\z}a));
}

# Runs after a public memo was added: no older page may be served from here on. It renews the most
# popular page at once, so that its visitors do not all request it at the same time. Storing it
# settles the other pages under the same lock.
sub memo_was_added {
    my ($self) = @_;
    $self->answer('/', {}) if $self->{store}->is_used;
    return;
}

# Returns the page as it is stored, with the comments, as text.
sub render {
    my ($self, $path) = @_;
    return $self->_list(0, 1) if $path eq '/';
    return $self->_list($1, 0) if $path =~ m{\A/recent/(\d+)\z}a;
    return $self->_memo($1) if $path =~ m{\A/memo/(\d+)\z}a;
    return;
}

sub _list {
    my ($self, $page, $is_front) = @_;
    my $last = $self->{memos}->last_page;
    return if $page > $last;
    return $self->{view}->part(
        $is_front ? 'front' : 'recent',
        { memos => $self->{memos}->public_page($page), page => $page, last_page => $last },
        { total => _include($TOTAL), session_bar            => _include($SESSION_BAR) },
    );
}

sub _memo {
    my ($self, $id) = @_;
    my $memo = $self->{memos}->find($id);
    return if !$memo || !defined $memo->{public_number};
    my $neighbours = $self->{view}->part(
        'neighbours',
        { memo => $memo, neighbours => $self->{memos}->public_neighbours($memo) }
    );
    return $self->{view}->part(
        'memo',
        { memo => $memo },
        {
            body       => Memo::Markdown::html($memo->{content}),
            neighbours => $self->{view}
                ->part('stored_neighbours', { memo => $memo }, { everybodys => $neighbours }),
            newest      => _include($NEWEST),
            total       => _include($TOTAL),
            session_bar => _include($SESSION_BAR),
        },
    );
}

sub _include { return "<!--# include $_[0] -->" }

sub _fragments {
    my ($parts) = @_;
    return {
        $TOTAL       => Memo::View::thousands($parts->{memos}->public_total),
        $NEWEST      => $parts->{view}->part('newest', { memos => $parts->{memos}->newest }),
        $SESSION_BAR => _session_bar($parts->{view}),
    };
}

# Returns the bar's end: the part for each kind of visitor, and a template that chooses.
sub _session_bar {
    my ($view) = @_;
    return $view->part(
        'stored_session_bar',
        {},
        {
            stranger  => $view->part('session_bar', {}),
            signed_in => $view->part(
                'session_bar',
                {
                    user       => { name => _echo('session.name') },
                    csrf_token => _echo('session.csrf_token'),
                }
            ),
        }
    );
}

# Kirin escapes echoed values.
sub _echo { return Text::Xslate::mark_raw(qq{<!--# echo var="$_[0]" default="" -->}) }

# Every new memo shifts all lists, so all are removed and made again at the next request. Of the
# memos' pages only those of the new memos and of their older neighbours change. The parts of
# private pages go only if nothing in the store can be trusted.
sub _keys_changed {
    my ($memos, $private, $settled) = @_;
    my @ids = defined $settled ? $memos->ids_touched_since($settled) : $memos->public_ids;
    return (
        '/', (map { "/recent/$_" } 0 .. $memos->last_page), (map { "/memo/$_" } @ids),
        defined $settled ? () : $private->keys_in_store
    );
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::PublicPages - the pages everybody may see, and their way into the store

=head1 SYNOPSIS

    my $pages = Memo::PublicPages->new(
        database => $database, memos => $memos, view => $view, private => $private_pages,
        store => $store_client);
    my $bytes = $pages->answer('/memo/17', { session_bar => $html, user_id => 7 }) or not_found();
    $pages->memo_was_added;

=cut
