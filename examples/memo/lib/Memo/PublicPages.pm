package Memo::PublicPages;
use v5.16;
use warnings;

use Memo::Markdown ();
use Memo::Memos ();
use Memo::PageStore ();
use Memo::View ();
use Text::Xslate ();

# The pages that are the same for everybody: /, /recent/N and /memo/N of a public memo. They are rendered with
# include comments in the places of what most of them share and every new memo changes, so that a new memo
# replaces two small items and leaves thousands of pages as they are. Kirin fills a comment from the store item of that
# name; where the page does not go through the store, "inlined" does.
my $TOTAL  = 'fragment/total';
my $NEWEST = 'fragment/newest';
# Nobody but our templates can write such a comment: "<" in a memo is always escaped.
my $INCLUDE = qr/<!--# include (\S+) -->/;

# database, memos, view, and store (the address, or none).
sub new {
    my ($class, %given) = @_;
    my $address = delete $given{store};
    my $self    = bless {%given}, $class;
    my $view    = $given{view};
    # The closures do not hold $self: it holds the store.
    my $parts = { memos => $given{memos}, view => $view };
    $self->{store} = Memo::PageStore->new(
        address       => $address,
        database      => $given{database},
        memos         => $given{memos},
        identity      => sub { ($parts->{site} //= $given{database}->setting('site_id')) . '/' . $view->fingerprint },
        fragment_keys => [$TOTAL, $NEWEST],
        fragments     => sub { _fragments($parts) },
        paths_changed => sub { _paths_changed($given{memos}, $_[0]) },
    );
    return $self;
}

sub store { return $_[0]{store} }

# The page as bytes for the answer, or nothing when there is no such public page. Stored on the way.
sub answer {
    my ($self, $path) = @_;
    my ($html, $version, $fragments);
    $self->{database}->snapshot(sub {
        $html      = $self->render($path) // return;
        $version   = $self->{memos}->public_total;
        $fragments = _fragments($self);
    });
    return if !defined $html;
    $self->{store}->push($path, $html, $version);
    return $html =~ s/$INCLUDE/$fragments->{$1} \/\/ ''/ger;
}

# A public memo was added: nothing older may be served from here on. The page that most people see is made anew at
# once, so that they need not come for it all together; storing it settles the others under the same lock.
sub memo_was_added {
    my ($self) = @_;
    $self->answer('/') if $self->{store}->is_used;
    return;
}

# As stored: with the include comments.
sub render {
    my ($self, $path) = @_;
    return $self->_list(0, 1)  if $path eq '/';
    return $self->_list($1, 0) if $path =~ m{\A/recent/(\d+)\z}a;
    return $self->_memo($1)    if $path =~ m{\A/memo/(\d+)\z}a;
    return;
}

sub _list {
    my ($self, $page, $is_front) = @_;
    my $last = $self->{memos}->last_page;
    return if $page > $last;
    return $self->{view}->render($is_front ? 'front' : 'recent', {
        memos     => $self->{memos}->public_page($page),
        page      => $page,
        last_page => $last,
        total     => _include($TOTAL),
    });
}

sub _memo {
    my ($self, $id) = @_;
    my $memo = $self->{memos}->find($id);
    return if !$memo || !defined $memo->{public_number};
    return $self->{view}->render('memo',
        {
            memo       => $memo,
            neighbours => $self->{memos}->public_neighbours($memo),
            newest     => _include($NEWEST),
            total      => _include($TOTAL),
        },
        { body => Memo::Markdown::html($memo->{content}) });
}

sub _include { return Text::Xslate::mark_raw("<!--# include $_[0] -->") }

sub _fragments {
    my ($parts) = @_;
    return {
        $TOTAL  => Memo::View::thousands($parts->{memos}->public_total),
        $NEWEST => $parts->{view}->render('newest', { memos => $parts->{memos}->newest }),
    };
}

# Every list shifts by one with every new memo, so all are removed and made again on demand. Of the
# memos' pages only the new ones' and their older neighbours' change.
sub _paths_changed {
    my ($memos, $settled) = @_;
    my @ids = defined $settled ? $memos->ids_touched_since($settled) : $memos->public_ids;
    return ('/', (map {"/recent/$_"} 0 .. $memos->last_page), map {"/memo/$_"} @ids);
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::PublicPages - the pages everybody may see, and their way into the store

=head1 SYNOPSIS

    my $pages = Memo::PublicPages->new(
        database => $database, memos => $memos, view => $view, store => $ENV{KIRIN_STORE});
    my $bytes = $pages->answer('/memo/17') or not_found();
    $pages->memo_was_added;

=cut
