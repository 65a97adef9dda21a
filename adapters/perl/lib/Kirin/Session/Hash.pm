package Kirin::Session::Hash;
use v5.16;
use warnings;

# The hash keeps only the session, so that the loaded content can be replaced.
sub TIEHASH { my ($class, $session) = @_; return bless { session => $session }, $class }

sub FETCH { $_[0]{session}->content->{ $_[1] } }
sub EXISTS { exists $_[0]{session}->content->{ $_[1] } }
sub SCALAR { scalar %{ $_[0]{session}->content } }
sub NEXTKEY { each %{ $_[0]{session}->content } }

sub FIRSTKEY {
    my $content = $_[0]{session}->content;
    # Resets the iterator.
    keys %$content;
    return each %$content;
}

sub STORE {
    my ($self, $key, $value) = @_;
    my $content = $self->{session}->content;
    my $old = $content->{$key};
    # Storing the same text again is no change. A reference may always be a change.
    $self->{session}->change
        if !defined $old || !defined $value || ref $old || ref $value || $old ne $value;
    $content->{$key} = $value;
}

sub DELETE {
    my ($self, $key) = @_;
    my $content = $self->{session}->content;
    $self->{session}->change if exists $content->{$key};
    return delete $content->{$key};
}

sub CLEAR {
    my $self = shift;
    my $content = $self->{session}->content;
    $self->{session}->change if %$content;
    %$content = ();
}

1;

__END__

=head1 NAME

Kirin::Session::Hash - psgix.session, which is fetched at its first use

=head1 SYNOPSIS

    tie my %session, 'Kirin::Session::Hash', $session;

=head1 DESCRIPTION

Part of L<Kirin::Session>.

=cut
