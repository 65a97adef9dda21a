package Kirin::RequestBody::JSON;
use v5.16;
use warnings;

use JSON::MaybeXS ();
use Kirin::RequestBody::Error;

use constant MAX_JSON_BYTES => 8 * 1024 * 1024;

my $json = JSON::MaybeXS->new(utf8 => 1, max_depth => 128);

sub new {
    my ($class, undef, $option) = @_;
    return bless { text => '', limit => $option->{max_json_bytes} // MAX_JSON_BYTES }, $class;
}

sub add {
    my $self = shift;
    $self->{text} .= $_[0];
    Kirin::RequestBody::Error->too_large("JSON of more than $self->{limit} bytes")
        if $self->{limit} && length $self->{text} > $self->{limit};
}

# The members of an object are the parameters. Other values have none.
sub finalize {
    my $self = shift;
    my $value = eval { $json->decode($self->{text}) };
    Kirin::RequestBody::Error->bad('not JSON: ' . $@ =~ s/ at \S+ line [0-9]+\.?\n?\z//r) if $@;
    my @params = ref $value eq 'HASH' ? %$value : ();
    encode(@params);
    return (\@params, []);
}

# Encodes text as bytes, at any depth, in place. Numbers are text, too.
sub encode {
    for (@_) {
        my $kind = ref;
        if ($kind eq '') {
            utf8::encode($_) if defined;
        }
        elsif ($kind eq 'ARRAY') {
            encode(@$_);
        }
        elsif ($kind eq 'HASH') {
            my @members = %$_;
            encode(@members);
            $_ = {@members};
        }
        # These are true and false.
        else {
            $_ = "$_";
        }
    }
}

1;

__END__

=head1 NAME

Kirin::RequestBody::JSON - application/json

=head1 DESCRIPTION

The parser for JSON of L<Kirin::RequestBody>. The members of an object become parameters. All names
and texts in them are encoded in UTF-8. Arrays and objects below stay arrays and hashes. C<true> and
C<false> are C<1> and C<0>.

=cut
