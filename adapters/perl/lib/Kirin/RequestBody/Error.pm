package Kirin::RequestBody::Error;
use v5.16;
use warnings;

use overload '""' => sub { $_[0]{message} . "\n" }, bool => sub { 1 }, fallback => 1;

# The status of the error: 400, or 413 if the request exceeds a limit.
sub bad { die bless { code => 400, message => $_[1] }, $_[0] }
sub too_large { die bless { code => 413, message => $_[1] }, $_[0] }

sub code { $_[0]{code} }
sub message { $_[0]{message} }

sub as_psgi {
    my $self = shift;
    my $text = $self->{code} == 413 ? 'Content Too Large' : 'Bad Request';
    return [
        $self->{code}, ['Content-Type' => 'text/plain', 'Content-Length' => length $text],
        [$text]
    ];
}

1;

__END__

=head1 NAME

Kirin::RequestBody::Error - a malformed or too large request body

=head1 SYNOPSIS

    my ($parameters, $uploads) = eval { $parser->parse($env) };
    if (my $error = $@) {
        return $error->as_psgi if ref $error && $error->isa('Kirin::RequestBody::Error');
        die $error;
    }

=head1 DESCRIPTION

L<Plack::Middleware::HTTPExceptions> makes a response of it, too. C<code> is 400 or 413. C<message>,
and the object as a string, is for the log.

=cut
