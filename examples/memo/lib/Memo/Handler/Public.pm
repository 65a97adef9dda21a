package Memo::Handler::Public;
use v5.16;
use warnings;

use Encode ();
use Memo::Response ();

# GET / and /recent/N. The application gets these only if the store has no such page.
sub page {
    my ($app, $request) = @_;
    return _public_page($app, $request)
        // die Memo::Response::refusal(404, 'There is no such page.');
}

# GET /memo/N. Public memos are as above. A private memo is for its author. For others it does not
# exist.
sub memo {
    my ($app, $request, $id) = @_;
    my $answer = _public_page($app, $request);
    return $answer if $answer;

    my $memo = _own_memo($app, $request, $id)
        or die Memo::Response::refusal(404, 'There is no such memo, or it is not yours to read.');
    return Memo::Response::personal_page(
        200,
        $app->private_pages->page($memo, $request->csrf_token)
    );
}

# GET /memo/N/neighbours: the links that only the author sees. The page of a public memo includes
# them for its author.
sub neighbours {
    my ($app, $request, $id) = @_;
    my $memo = _own_memo($app, $request, $id)
        or die Memo::Response::refusal(404, 'There is no such memo, or it is not yours.');
    return _part($app->private_pages->neighbours($memo));
}

# GET /session-bar. Public pages include it if the store has no copy of the visitor's session.
# Looking at the session writes the copy again.
sub session_bar {
    my ($app, $request) = @_;
    return _part($app->session_bar($request));
}

sub _part { return Memo::Response::personal_page(200, Encode::encode_utf8($_[0])) }

sub _public_page {
    my ($app, $request) = @_;
    my $user = $request->user_signed_in;
    my $bytes = $app->pages->answer(
        $request->path,
        { session_bar => $app->session_bar($request), user_id => $user && $user->{id} }
    );
    return if !defined $bytes;
    return $user ? Memo::Response::personal_page(200, $bytes) : Memo::Response::public_page($bytes);
}

# Returns the memo, if the visitor has written it.
sub _own_memo {
    my ($app, $request, $id) = @_;
    my $user = $request->user_signed_in or return;
    my $memo = $app->memos->find($id) or return;
    return $memo->{user_id} == $user->{id} ? $memo : ();
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Handler::Public - the pages for everybody, and the parts of them that are for one visitor

=head1 SYNOPSIS

    my $router = Memo::Router->new([GET => '/memo/{number}', \&Memo::Handler::Public::memo]);

=cut
