package Memo::Request;
use v5.16;
use warnings;

use parent 'Plack::Request';

use Encode ();
use Memo::Random ();
use Memo::Response ();

my $LARGEST_FORM_BYTES = 256 * 1024;

sub new {
    my ($class, $env, $sessions) = @_;
    my $self = $class->SUPER::new($env);
    $self->{sessions} = $sessions;
    return $self;
}

sub is_https { return $_[0]->scheme eq 'https' }

sub session_token {
    my ($self) = @_;
    $self->{session_token} = $self->{sessions}->token_from_cookies($self->cookies)
        if !exists $self->{session_token};
    return $self->{session_token};
}

# Returns the signed-in user, or undef.
sub user_signed_in {
    my ($self) = @_;
    $self->{user_signed_in} = $self->{sessions}->user($self->session_token)
        if !exists $self->{user_signed_in};
    return $self->{user_signed_in};
}

# Returns the token for the forms of this response. A visitor without a cookie gets one for it (see
# form_cookies).
sub csrf_token {
    my ($self) = @_;
    if (!defined $self->session_token) {
        $self->{session_token} = Memo::Random::token();
        $self->{has_new_token} = 1;
    }
    return $self->{sessions}->csrf_token($self->session_token);
}

# Returns the Set-Cookie values of a page with forms.
sub form_cookies {
    my ($self) = @_;
    return $self->{has_new_token}
        ? $self->{sessions}->cookies_for_form($self->session_token, $self->is_https)
        : ();
}

# Returns a field of the posted form as text.
sub field {
    my ($self, $name) = @_;
    my $bytes = $self->body_parameters->{$name} // '';
    my $text = eval { Encode::decode('UTF-8', $bytes, Encode::FB_CROAK) };
    die Memo::Response::refusal(400, 'The form is not in UTF-8.') if !defined $text;
    return $text;
}

# Checks every POST before its form is used.
sub refuse_forgeries {
    my ($self) = @_;
    die Memo::Response::refusal(413, 'The form is too large.')
        if ($self->content_length // 0) > $LARGEST_FORM_BYTES;
    my $given = $self->body_parameters->{csrf_token};
    return if $self->{sessions}->csrf_token_is_right($self->session_token, $given);
    die Memo::Response::refusal(
        403,
        'This form is not from this site, or it is too old. Go back, reload and try again.'
    );
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Request - a request, its visitor and its form

=head1 SYNOPSIS

    my $request = Memo::Request->new($env, $sessions);
    $request->refuse_forgeries;
    my $user    = $request->user_signed_in;
    my $content = $request->field('content');

=cut
