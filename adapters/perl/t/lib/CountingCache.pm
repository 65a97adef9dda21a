package CountingCache;
use v5.16;
use warnings;

use Storable qw(dclone);

# A cache in memory that keeps copies, as a cache behind a network does, and records the calls.

sub new { bless { item => {}, calls => [] }, shift }

sub get {
    my ($self, $key) = @_;
    push @{ $self->{calls} }, 'get';
    my $value = $self->{item}{$key};
    return ref $value ? dclone($value) : $value;
}

sub set {
    my ($self, $key, $value, @more) = @_;
    push @{ $self->{calls} }, join ' ', 'set', @more;
    $self->{item}{$key} = ref $value ? dclone($value) : $value;
    return 1;
}

sub remove {
    my ($self, $key) = @_;
    push @{ $self->{calls} }, 'remove';
    return defined delete $self->{item}{$key};
}

# Returns the calls since the last time.
sub calls {
    my $self = shift;
    my $calls = join ', ', @{ $self->{calls} };
    $self->{calls} = [];
    return $calls;
}

1;
