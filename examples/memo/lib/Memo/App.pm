package Memo::App;
use v5.16;
use warnings;

use Memo::Database ();
use Memo::Handler::Account ();
use Memo::Handler::Public ();
use Memo::Handler::Writing ();
use Memo::Memos ();
use Memo::PrivatePages ();
use Memo::PublicPages ();
use Memo::Request ();
use Memo::Response ();
use Memo::Router ();
use Memo::SessionItems ();
use Memo::Sessions ();
use Memo::StoreClient ();
use Memo::Users ();
use Memo::View ();

# Creates the application. Arguments: database (path), templates (directory), store (address, or
# none).
sub new {
    my ($class, %given) = @_;
    my $database = Memo::Database->new($given{database});
    warn "memo: made an empty database at @{[ $database->path ]}; seed.pl fills one\n"
        if $database->install_schema;
    # A preloading server forks its workers after this. Each worker opens its own handle.
    $database->close;

    my $view = Memo::View->new($given{templates});
    my $memos = Memo::Memos->new($database);
    my $store = Memo::StoreClient->new($given{store});
    my $items = Memo::SessionItems->new(database => $database, store => $store);
    my $private = Memo::PrivatePages->new(
        database => $database, memos => $memos, view => $view,
        store    => $store
    );
    my $self = bless {
        database      => $database,
        memos         => $memos,
        sessions      => Memo::Sessions->new(database => $database, items => $items),
        users         => Memo::Users->new($database),
        view          => $view,
        store         => $store,
        private_pages => $private,
        pages         => Memo::PublicPages->new(
            database => $database, memos => $memos, view => $view, private => $private,
            store    => $store
        ),
    }, $class;
    $self->{router} = Memo::Router->new(
        [GET  => '/', \&Memo::Handler::Public::page],
        [GET  => '/recent/{number}', \&Memo::Handler::Public::page],
        [GET  => '/memo/{number}', \&Memo::Handler::Public::memo],
        [GET  => '/memo/{number}/neighbours', \&Memo::Handler::Public::neighbours],
        [GET  => '/session-bar', \&Memo::Handler::Public::session_bar],
        [GET  => '/mypage', \&Memo::Handler::Writing::mypage],
        [POST => '/memo', \&Memo::Handler::Writing::write],
        [GET  => '/signup', \&Memo::Handler::Account::sign_up_form],
        [POST => '/signup', \&Memo::Handler::Account::sign_up],
        [GET  => '/signin', \&Memo::Handler::Account::sign_in_form],
        [POST => '/signin', \&Memo::Handler::Account::sign_in],
        [POST => '/signout', \&Memo::Handler::Account::sign_out],
    );
    return $self;
}

sub database { return $_[0]{database} }
sub memos { return $_[0]{memos} }
sub pages { return $_[0]{pages} }
sub private_pages { return $_[0]{private_pages} }
sub sessions { return $_[0]{sessions} }
sub users { return $_[0]{users} }

sub to_app {
    my ($self) = @_;
    return sub { return $self->respond($_[0]) };
}

sub respond {
    my ($self, $env) = @_;
    $self->{store}->catch_up;
    $self->{pages}->store->catch_up;
    my $request = Memo::Request->new($env, $self->{sessions});
    my $answer = eval { $self->_dispatch($request) };
    return $answer if $answer;
    my $error = $@;
    # An exception that is not a refusal is an error of the application. The server logs it and
    # answers 500.
    die $error if ref $error ne 'Memo::Response::Refusal';
    return $self->_refuse($request, $error);
}

sub _dispatch {
    my ($self, $request) = @_;
    my ($handler, @rest) = $self->{router}->match($request->method, $request->path);
    return $handler->($self, $request, @rest) if $handler;
    die Memo::Response::refusal(405, 'This address does not do that.', Allow => join ', ', @rest)
        if @rest;
    die Memo::Response::refusal(404, 'There is no such page.');
}

# Returns a page for this visitor: with the session bar filled in, and with the token and cookie
# that its forms need.
sub personal_page {
    my ($self, $request, $status, $template, $variables, $raw) = @_;
    my $csrf_token = $variables->{form} ? $request->csrf_token : undef;
    my $bytes = $self->{view}->render(
        $template,
        { %$variables, csrf_token => $csrf_token },
        { session_bar             => $self->session_bar($request), %{ $raw // {} } },
    );
    return Memo::Response::personal_page($status, $bytes, $request->form_cookies);
}

# Returns the end of the bar at the top for this visitor, as HTML in text.
sub session_bar {
    my ($self, $request) = @_;
    my $user = $request->user_signed_in;
    return $self->{view}->part(
        'session_bar',
        { user => $user, csrf_token => $user ? $request->csrf_token : undef }
    );
}

my %TITLE_OF_STATUS = (
    400 => 'Bad request', 403 => 'Refused', 404 => 'Not found', 405 => 'Not allowed',
    413 => 'Too large'
);

sub _refuse {
    my ($self, $request, $refusal) = @_;
    my ($status, $reason, $headers) = @{$refusal}{qw(status reason headers)};
    my $answer = $self->personal_page(
        $request, $status, 'refusal',
        { status => $status, title => $TITLE_OF_STATUS{$status}, reason => $reason }
    );
    push @{ $answer->[1] }, @$headers;
    return $answer;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::App - the memo site as a PSGI application

=head1 SYNOPSIS

    my $app = Memo::App->new(
        database  => 'data/memo.sqlite',
        templates => 'templates',
        store     => $ENV{KIRIN_STORE},
    )->to_app;

=cut
