package Kirin::Session::Options;
use v5.16;
use warnings;

# "id" is known only after a request to the store. All other keys are in an ordinary hash.
sub TIEHASH {
    my ($class, $session) = @_;
    # "id" is one of the keys.
    $session->{options}{id} = undef;
    return bless { session => $session }, $class;
}

sub FETCH {
    my ($self, $key) = @_;
    return $self->{session}{options}{$key} if $key ne 'id';
    # Code that asks for the id wants to find the session under it again.
    $self->{session}{id_was_read} = 1;
    return $self->{session}->id;
}

sub STORE {
    my ($self, $key, $value) = @_;
    return $self->{session}{options}{$key} = $value if $key ne 'id';
    $self->{session}->load if !$self->{session}->is_touched;
    $self->{session}{id} = $value;
}

sub DELETE {
    my ($self, $key) = @_;
    return $key eq 'id' ? undef : delete $self->{session}{options}{$key};
}

sub CLEAR {
    my $options = $_[0]{session}{options};
    delete @$options{ grep { $_ ne 'id' } keys %$options };
}

sub FIRSTKEY {
    my $options = $_[0]{session}{options};
    # Resets the iterator.
    keys %$options;
    return each %$options;
}

sub NEXTKEY { each %{ $_[0]{session}{options} } }
sub EXISTS { exists $_[0]{session}{options}{ $_[1] } }
sub SCALAR { scalar %{ $_[0]{session}{options} } }

1;

__END__

=head1 NAME

Kirin::Session::Options - psgix.session.options, whose id is computed at its first use

=head1 SYNOPSIS

    tie my %options, 'Kirin::Session::Options', $session;

=head1 DESCRIPTION

Part of L<Kirin::Session>.

=cut
