package Memo::Handler::Writing;
use v5.16;
use warnings;

use Memo::Response ();

my $LONGEST_MEMO = 64_000;

# GET /mypage: the form and all memos of the visitor.
sub mypage {
    my ($app, $request) = @_;
    my $user = $request->user_signed_in or return Memo::Response::see_other('/signin');
    return _mypage($app, $request, $user, 200, {});
}

# POST /memo
sub write {
    my ($app, $request) = @_;
    $request->refuse_forgeries;
    my $user = $request->user_signed_in
        or die Memo::Response::refusal(403, 'Sign in to write a memo.');
    my $content = _clean($request->field('content'));
    my $private = $request->field('is_private') ? 1 : 0;
    my $problem =
          $content !~ /\S/ ? 'A memo has at least one word.'
        : length $content > $LONGEST_MEMO ? "A memo has at most $LONGEST_MEMO characters."
        : undef;
    return _mypage(
        $app, $request, $user, 400,
        { problem => $problem, content => $content, is_private => $private }
    ) if $problem;

    my $id = $app->memos->create(
        $user->{id}, $content, $private,
        sub { $app->private_pages->author_writes($user->{id}) }
    );
    $app->pages->memo_was_added if !$private;
    return Memo::Response::see_other("/memo/$id");
}

sub _mypage {
    my ($app, $request, $user, $status, $form) = @_;
    return $app->personal_page(
        $request, $status, 'mypage',
        { form => $form, memos => $app->memos->of_user($user->{id}) }
    );
}

# Browsers send CR LF. Other control characters are removed.
sub _clean {
    my ($content) = @_;
    $content =~ s/\r\n?/\n/g;
    $content =~ s/[^\P{Cntrl}\n\t]//g;
    return $content;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Handler::Writing - one's own memos

=head1 SYNOPSIS

    my $router = Memo::Router->new([POST => '/memo', \&Memo::Handler::Writing::write]);

=cut
