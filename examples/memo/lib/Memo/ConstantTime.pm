package Memo::ConstantTime;
use v5.16;
use warnings;

# Compares two strings. The time does not show where they first differ. Their length is not a secret
# here.
sub equal {
    my ($left, $right) = @_;
    return 0 if length $left != length $right;
    my $difference = 0;
    $difference |= ord(substr $left, $_, 1) ^ ord(substr $right, $_, 1) for 0 .. length($left) - 1;
    return $difference == 0 ? 1 : 0;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::ConstantTime - string comparison for secrets

=head1 SYNOPSIS

    Memo::ConstantTime::equal($given, $expected) or refuse();

=cut
