package Kirin::Session::AtEnd;
use v5.16;
use warnings;

sub new { my ($class, $code) = @_; return bless { code => $code }, $class }

sub DESTROY {
    my $self = shift;
    # If the program is not ending, nothing that the code uses has been destroyed yet.
    return if ${^GLOBAL_PHASE} eq 'DESTRUCT';
    local ($@, $!, $?);
    eval { $self->{code}->(); 1 } or warn $@;
}

1;

__END__

=head1 NAME

Kirin::Session::AtEnd - runs code when a request's environment goes

=head1 SYNOPSIS

    $env->{'psgix.session.cleanup'} = Kirin::Session::AtEnd->new(sub { ... });

=head1 DESCRIPTION

For servers without C<psgix.cleanup>. It is a part of L<Plack::Middleware::Session::Kirin>.

=cut
