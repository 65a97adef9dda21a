package UnreadableStore;
use v5.16;
use warnings;

use parent 'Kirin::Store';

# A Kirin::Store that can be written but not read, as if it has come back in between.

sub new { bless { done => [] }, shift }

sub get { $_[0]{error} = 'no answer'; return }
sub gets { $_[0]{error} = 'no answer'; return }

sub set {
    my ($self, @arguments) = @_;
    $self->{error} = undef;
    push @{ $self->{done} }, "set $arguments[0]";
    return 1;
}

sub remove {
    my ($self, $key) = @_;
    $self->{error} = undef;
    push @{ $self->{done} }, "remove $key";
    return 1;
}

1;
