package Memo::Handler::Account;
use v5.16;
use warnings;

use Memo::Response ();

my %SIGN_UP = (action => '/signup', title => 'Sign up', is_sign_up => 1);
my %SIGN_IN = (action => '/signin', title => 'Sign in', is_sign_up => 0);

# GET /signup and /signin
sub sign_up_form { return _form(@_[0, 1], \%SIGN_UP) }
sub sign_in_form { return _form(@_[0, 1], \%SIGN_IN) }

sub _form {
    my ($app, $request, $form) = @_;
    return Memo::Response::see_other('/mypage') if $request->user_signed_in;
    return $app->personal_page($request, 200, 'account', { form => $form });
}

# POST /signup
sub sign_up {
    my ($app, $request) = @_;
    $request->refuse_forgeries;
    my $name = $request->field('name');
    my ($user, $problem) = $app->users->sign_up($name, $request->field('password'));
    return _again($app, $request, { %SIGN_UP, name => $name, problem => $problem }) if !$user;
    return _welcome($app, $request, $user);
}

# POST /signin
sub sign_in {
    my ($app, $request) = @_;
    $request->refuse_forgeries;
    my $name = $request->field('name');
    my $user = $app->users->sign_in($name, $request->field('password'))
        or return _again(
        $app, $request,
        { %SIGN_IN, name => $name, problem => 'Name or password is wrong.' }
        );
    return _welcome($app, $request, $user);
}

# POST /signout
sub sign_out {
    my ($app, $request) = @_;
    $request->refuse_forgeries;
    $app->sessions->end($request->session_token);
    return Memo::Response::see_other('/', $app->sessions->cookies_for_sign_out($request->is_https));
}

sub _again {
    my ($app, $request, $form) = @_;
    return $app->personal_page($request, 400, 'account', { form => $form });
}

sub _welcome {
    my ($app, $request, $user) = @_;
    my $token = $app->sessions->start($user, $request->session_token);
    return Memo::Response::see_other(
        '/mypage',
        $app->sessions->cookies_for_sign_in($token, $request->is_https)
    );
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Handler::Account - sign up, in and out

=head1 SYNOPSIS

    my $router = Memo::Router->new([POST => '/signout', \&Memo::Handler::Account::sign_out]);

=cut
