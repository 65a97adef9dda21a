package Kirin::RequestBody::JSON;
use v5.16;
use warnings;

use JSON::MaybeXS ();
use Kirin::RequestBody::Error;

use constant DEFAULT => (max_json_bytes => 8 * 1024 * 1024);

my $json = JSON::MaybeXS->new(utf8 => 1, max_depth => 128);

sub new {
    my ($class, undef, $option) = @_;
    return bless { text => '', DEFAULT, %{ $option // {} } }, $class;
}

sub add {
    my $self = shift;
    $self->{text} .= $_[0];
    my $limit = $self->{max_json_bytes};
    Kirin::RequestBody::Error->too_large("JSON of more than $limit bytes") if $limit && length $self->{text} > $limit;
}

# The members of an object are the parameters. Other values have none.
sub finalize {
    my $self  = shift;
    my $value = eval { $json->decode($self->{text}) };
    Kirin::RequestBody::Error->bad('not JSON: ' . $@ =~ s/ at \S+ line [0-9]+\.?\n?\z//r) if $@;
    return ([], []) if ref $value ne 'HASH';
    return ([map { (encoded($_), encoded($value->{$_})) } keys %$value], []);
}

# Parameters are bytes, however deep they are.
sub encoded {
    my $value = shift;
    return [map { scalar encoded($_) } @$value] if ref $value eq 'ARRAY';
    return { map { (scalar encoded($_) => scalar encoded($value->{$_})) } keys %$value } if ref $value eq 'HASH';
    return undef if !defined $value;
    my $text = "$value";
    utf8::encode($text);
    return $text;
}

1;

__END__

=head1 NAME

Kirin::RequestBody::JSON - application/json

=head1 DESCRIPTION

The parser for JSON of L<Kirin::RequestBody>: the members of an object become parameters, all names and text in them UTF-8 encoded.
Arrays and objects below stay arrays and hashes. C<true> and C<false> are C<1> and C<0>.

=cut
