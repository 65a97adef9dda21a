package Memo::Handler::Public;
use v5.16;
use warnings;

use Memo::Markdown ();
use Memo::Response ();

# GET / and /recent/N. Here only when the store has no such page.
sub page {
    my ($app, $request) = @_;
    my $bytes = $app->pages->answer($request->path) // die Memo::Response::refusal(404, 'There is no such page.');
    return Memo::Response::public_page($bytes);
}

# GET /memo/N. A public one as above. A private one for its author; to others it does not exist.
sub memo {
    my ($app, $request, $id) = @_;
    my $bytes = $app->pages->answer($request->path);
    return Memo::Response::public_page($bytes) if defined $bytes;

    my $user = $request->user_signed_in;
    my $memo = $user ? $app->memos->find($id) : undef;
    die Memo::Response::refusal(404, 'There is no such memo, or it is not yours to read.')
        if !$memo || $memo->{user_id} != $user->{id};
    return $app->personal_page($request, 200, 'private_memo',
        { memo => $memo, neighbours => $app->memos->all_neighbours($memo) },
        { body => Memo::Markdown::html($memo->{content}) });
}

# GET /session, asked by the script on a public page: who is signed in, the token for the sign-out form, and
# on the reader's own memo (?memo=N) the neighbours that others do not see.
sub session {
    my ($app, $request) = @_;
    my $user = $request->user_signed_in or return Memo::Response::json({ user => undef });
    my %session = (user => $user->{name}, csrf_token => $request->csrf_token);
    my $id      = $request->query_parameters->{memo} // '';
    if ($id =~ /\A[0-9]{1,9}\z/) {
        my $memo = $app->memos->find($id);
        $session{neighbours} = $app->memos->all_neighbours($memo) if $memo && $memo->{user_id} == $user->{id};
    }
    return Memo::Response::json(\%session);
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Handler::Public - the pages for everybody, and what they ask for later

=head1 SYNOPSIS

    my $router = Memo::Router->new([GET => '/memo/{number}', \&Memo::Handler::Public::memo]);

=cut
