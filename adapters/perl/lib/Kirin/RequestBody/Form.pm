package Kirin::RequestBody::Form;
use v5.16;
use warnings;

use Kirin::RequestBody::Error;
use WWW::Form::UrlEncoded ();

my %DECODED = map { ("$_->[0]$_->[1]" => chr hex "$_->[0]$_->[1]") }
    map {
    my $high = $_;
    map { [$high, $_] } 0 .. 9, 'a' .. 'f', 'A' .. 'F'
    } 0 .. 9, 'a' .. 'f', 'A' .. 'F';

# The longest form in bytes.
use constant MAX_FORM_BYTES => 8 * 1024 * 1024;

# Returns names and values, as bytes. Uses C if WWW::Form::UrlEncoded has its module for that.
*decode =
    defined &WWW::Form::UrlEncoded::PP::parse_urlencoded_arrayref
    ? \&decode_in_perl
    : \&WWW::Form::UrlEncoded::parse_urlencoded_arrayref;

# Most parts of most forms need no decoding.
sub decode_in_perl {
    my $text = shift;
    my @parts;
    for my $pair (split /[&;] ?/, $text // '', -1) {
        my $equals = index $pair, '=';
        push @parts,
            $equals < 0 ? ($pair, '') : (substr($pair, 0, $equals), substr $pair, $equals + 1);
    }
    return \@parts if !@parts;
    if (index($text, '+') >= 0) {
        tr/+/ / for @parts;
    }
    if (index($text, '%') >= 0) {
        s/%([0-9A-Fa-f]{2})/$DECODED{$1}/g for @parts;
    }
    return \@parts;
}

sub new {
    my ($class, undef, $option) = @_;
    return bless { text => '', limit => $option->{max_form_bytes} // MAX_FORM_BYTES }, $class;
}

sub add {
    my $self = shift;
    $self->{text} .= $_[0];
    Kirin::RequestBody::Error->too_large("form of more than $self->{limit} bytes")
        if $self->{limit} && length $self->{text} > $self->{limit};
}

sub finalize { (decode($_[0]{text}), []) }

1;

__END__

=head1 NAME

Kirin::RequestBody::Form - application/x-www-form-urlencoded

=head1 SYNOPSIS

    my $names_and_values = Kirin::RequestBody::Form::decode('a=1&b=%21');

=head1 DESCRIPTION

The parser for forms of L<Kirin::RequestBody>. C<&> or C<;> separates pairs, as in
L<WWW::Form::UrlEncoded>.

=cut
