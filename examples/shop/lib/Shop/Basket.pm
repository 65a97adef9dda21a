package Shop::Basket;
use v5.16;
use warnings;

# The visitor's session: the basket, the token of the forms and the last order. Pages show
# `basket_count` and `csrf_token` of it.

sub new {
    my ($class, $env) = @_;
    return bless { session => $env->{'psgix.session'} }, $class;
}

sub start {
    my ($self) = @_;
    $self->{session}{csrf_token} //= random();
    return;
}

sub quantities { return $_[0]{session}{basket} // {} }
sub last_order { return $_[0]{session}{last_order} }

sub set_quantity {
    my ($self, $product, $quantity) = @_;
    my $session = $self->{session};
    my %basket = %{ $self->quantities };
    $basket{$product} = $quantity + 0;
    delete $basket{$product} if !$quantity;
    my $count = 0;
    $count += $_ for values %basket;
    @$session{qw(basket basket_count)} = (\%basket, $count);
    return;
}

sub empty {
    my ($self) = @_;
    delete @{ $self->{session} }{qw(basket basket_count)};
    return;
}

sub remember_order {
    my ($self, $number) = @_;
    $self->{session}{last_order} = $number;
    return;
}

# The time of the comparison does not show where the two first differ.
sub is_own_token {
    my ($self, $given) = @_;
    my $own = $self->{session}{csrf_token} // return 0;
    return 0 if !defined $given || length $given != length $own;
    my $difference = 0;
    $difference |= ord(substr $own, $_, 1) ^ ord(substr $given, $_, 1) for 0 .. length($own) - 1;
    return $difference == 0;
}

# Returns 128 random bits in hexadecimal digits.
sub random {
    open my $file, '<:raw', '/dev/urandom' or die "/dev/urandom: $!\n";
    read($file, my $bytes, 16) == 16 or die "/dev/urandom: $!\n";
    return unpack 'H*', $bytes;
}

1;

__END__

=encoding utf8

=head1 NAME

Shop::Basket - what the session of a visitor has

=head1 SYNOPSIS

    my $basket = Shop::Basket->new(request->env);
    $basket->set_quantity(3, 2);

=cut
