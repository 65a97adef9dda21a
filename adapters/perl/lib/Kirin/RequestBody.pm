package Kirin::RequestBody;
use v5.16;
use warnings;

use Kirin::RequestBody::Error;
use Kirin::RequestBody::Form;
use Kirin::Worker::Parsed;

# Under Kirin the front does some of this work.
Kirin::Worker::Parsed::want(qw(query form))
    if \&Kirin::RequestBody::Form::decode == \&Kirin::RequestBody::Form::decode_in_perl;

# The names of the limits. Each parser has its defaults.
my %LIMIT = map { $_ => 1 } qw(
    max_body_bytes max_form_bytes max_json_bytes max_parts max_part_head_bytes max_fields_bytes
);

use constant BUFFER_LENGTH => 256 * 1024;

# The longest line of a chunked body with a length, or with a trailer.
use constant CHUNK_LINE_BYTES => 4096;

my %BY_MEDIA_TYPE = (
    'application/x-www-form-urlencoded' => 'Kirin::RequestBody::Form',
    'multipart/form-data'               => 'Kirin::RequestBody::MultiPart',
    'application/json'                  => 'Kirin::RequestBody::JSON',
);

# Other names of the parsers.
my %OURS = map {
    my $name = $_;
    map { ("$_$name" => { UrlEncoded => 'Form' }->{$name} // $name) } '', 'HTTP::Entity::Parser::'
} qw(UrlEncoded MultiPart JSON);

sub new {
    my ($class, %option) = @_;
    my $buffer_length = delete $option{buffer_length} || BUFFER_LENGTH;
    my @unknown = grep { !$LIMIT{$_} } sort keys %option;
    die "Kirin::RequestBody: unknown option @unknown" if @unknown;
    my %parser = map { $_ => [$BY_MEDIA_TYPE{$_}, \%option] } keys %BY_MEDIA_TYPE;
    return bless { limit => \%option, parser => \%parser, buffer_length => $buffer_length }, $class;
}

sub register {
    my ($self, $media_type, $class, $option) = @_;
    $self->{parser} = {} if !$self->{is_registered}++;
    if ($OURS{$class}) {
        $class = "Kirin::RequestBody::$OURS{$class}";
        $option = { %{ $self->{limit} }, %{ $option // {} } };
    }
    $self->{parser}{ lc $media_type } = [$class, $option];
    return $self;
}

# Returns parameters and uploads: references to lists of names and values, names and hashes.
sub parse {
    my ($self, $env) = @_;
    my $length = $env->{CONTENT_LENGTH};
    my $chunked = exists $env->{HTTP_TRANSFER_ENCODING}
        && lc(delete $env->{HTTP_TRANSFER_ENCODING} // '') eq 'chunked';
    if (!$length) {
        return ([], []) if !$env->{CONTENT_TYPE} && !$chunked;
        $length = $chunked ? undef : 0;
    }
    elsif ($length =~ tr/0-9//c || length $length > 15) {
        Kirin::RequestBody::Error->bad('Content-Length is no number');
    }
    my $limit = $self->{limit}{max_body_bytes};
    Kirin::RequestBody::Error->too_large("body of more than $limit bytes")
        if $limit && ($length // 0) > $limit;

    my $type = $env->{CONTENT_TYPE} // '';
    # Most media types are written like this, and have no parameters.
    my ($class, $option) =
        @{ $self->{parser}{$type} // $self->{parser}{ lc $type =~ s/[\s;,].*//sr } // [] };
    my $parser;
    if (defined $class) {
        if ($class eq 'Kirin::RequestBody::Form') {
            my $form = $self->short_form($env, $length, $option);
            return ($form, []) if $form;
        }
        load($class);
        $parser = $class->new($env, $option);
    }
    my $input = $env->{'psgi.input'};
    if ($input && $env->{'psgix.input.buffered'} && defined $length) {
        $input->seek(0, 0);
        if ($parser) {
            $self->read_exactly($input, $length, $parser);
            $input->seek(0, 0);
        }
    }
    elsif ($input) {
        $self->read_once($env, $length, $parser);
    }
    return $parser ? $parser->finalize : ([], []);
}

# Calls parse, and stores the results where Plack::Request keeps its own.
sub fill {
    my ($self, $env) = @_;
    my ($params, $uploads) = $self->parse($env);
    load($_) for qw(Hash::MultiValue HTTP::Headers::Fast Plack::Request::Upload);
    my @by_name;
    for (my $i = 0; $i < @$uploads; $i += 2) {
        my %upload = (
            %{ $uploads->[$i + 1] },
            headers => HTTP::Headers::Fast->new(@{ $uploads->[$i + 1]{headers} })
        );
        push @by_name, $uploads->[$i], Plack::Request::Upload->new(%upload);
    }
    $env->{'plack.request.query_parameters'} //= query($env);
    $env->{'plack.request.body_parameters'} = $params;
    $env->{'plack.request.upload'} = Hash::MultiValue->new(@by_name);
    return $env;
}

# Returns names and values of the query.
sub query {
    my $env = shift;
    my $query = $env->{QUERY_STRING};
    return [] if !defined $query || $query eq '';
    return Kirin::Worker::Parsed::query($env) // Kirin::RequestBody::Form::decode($query);
}

sub load {
    my $class = shift;
    require($class =~ s{::}{/}gr . '.pm') if !$class->can('new');
}

# Returns a form that the front has parsed, or that can be read at once.
sub short_form {
    my ($self, $env, $length, $option) = @_;
    return if !$length || $length > $self->{buffer_length} || !$env->{'psgix.input.buffered'};
    return if defined $option->{max_form_bytes} && $length > $option->{max_form_bytes};
    my $form = exists $env->{'kirin.form'} ? Kirin::Worker::Parsed::form($env) : undef;
    return $form if $form;
    my $input = $env->{'psgi.input'} or return;
    my ($count, $text);
    # A plain handle needs no method call.
    if (ref $input eq 'GLOB') {
        seek $input, 0, 0;
        $count = read $input, $text, $length;
        seek $input, 0, 0;
    }
    else {
        $input->seek(0, 0);
        $count = $input->read($text, $length);
        $input->seek(0, 0);
    }
    return $count && $count == $length ? Kirin::RequestBody::Form::decode($text) : undef;
}

# Passes the body to the parser. Replaces an input that can be read only once, or is chunked, with a
# copy.
sub read_once {
    my ($self, $env, $length, $parser) = @_;
    my $input = $env->{'psgi.input'};
    $input->seek(0, 0) if $env->{'psgix.input.buffered'};
    load('Stream::Buffered');
    my $copy = Stream::Buffered->new($length);
    if (defined $length) {
        $self->read_exactly($input, $length, $parser, $copy);
    }
    else {
        $env->{CONTENT_LENGTH} = $self->read_chunks($input, $parser, $copy);
    }
    @$env{qw(psgi.input psgix.input.buffered)} = ($copy->rewind, 1);
}

sub read_exactly {
    my ($self, $input, $length, $parser, $copy) = @_;
    while ($length > 0) {
        my $count = $input->read(
            my $piece,
            $length < $self->{buffer_length} ? $length : $self->{buffer_length}
        );
        Kirin::RequestBody::Error->bad("the body ends $length bytes too early") if !$count;
        $length -= $count;
        $parser->add($piece) if $parser;
        $copy->print($piece) if $copy;
    }
}

# Decodes the chunked coding (RFC 9112 section 7.1) of servers that leave it to the application.
# Returns the length of the decoded body.
sub read_chunks {
    my ($self, $input, $parser, $copy) = @_;
    my ($buffer, $total, $limit) = ('', 0, $self->{limit}{max_body_bytes});
    my $more = sub {
        $input->read(my $piece, $self->{buffer_length})
            or Kirin::RequestBody::Error->bad('a chunked body ends too early');
        $buffer .= $piece;
    };
    my $line = sub {
        my $end;
        while (($end = index $buffer, "\r\n") < 0) {
            last if length $buffer > CHUNK_LINE_BYTES;
            $more->();
        }
        Kirin::RequestBody::Error->bad('long line in a chunked body')
            if $end < 0 || $end > CHUNK_LINE_BYTES;
        my $line = substr $buffer, 0, $end;
        substr $buffer, 0, $end + 2, '';
        return $line;
    };
    while (1) {
        my ($digits) = $line->() =~ /\A0*([0-9A-Fa-f]{1,8})[\t ]*(?:;.*)?\z/s
            or Kirin::RequestBody::Error->bad('a chunk has no length');
        my $length = hex $digits or last;
        $total += $length;
        Kirin::RequestBody::Error->too_large("body of more than $limit bytes")
            if $limit && $total > $limit;
        while ($length > 0) {
            $more->() if $buffer eq '';
            my $piece = substr $buffer, 0, $length, '';
            $length -= length $piece;
            $parser->add($piece) if $parser;
            $copy->print($piece);
        }
        Kirin::RequestBody::Error->bad('a chunk is longer than it says') if $line->() ne '';
    }
    # These lines are trailers.
    for (my $lines = 0; $line->() ne ''; $lines++) {
        Kirin::RequestBody::Error->bad('too many trailers in a chunked body') if $lines > 100;
    }
    return $total;
}

1;

__END__

=head1 NAME

Kirin::RequestBody - parameters and uploads of a request, for frameworks

=head1 SYNOPSIS

    use Kirin::RequestBody;

    my $parser = Kirin::RequestBody->new(max_parts => 100);    # once, for all requests

    sub handle {
        my $env = shift;
        my ($parameters, $uploads) = $parser->parse($env);

        # or where Plack::Request looks for them
        $parser->fill($env);
        my $request = Plack::Request->new($env);
    }

=head1 DESCRIPTION

Parses C<application/x-www-form-urlencoded>, C<multipart/form-data> and C<application/json>. It has
the interface of L<HTTP::Entity::Parser> and can replace it under any PSGI server. Behind Kirin it
uses what the front has parsed. It is stricter (see L<Kirin::RequestBody::MultiPart>): an ambiguous
body is an error, not a guess.

Afterwards C<psgi.input> is at its start. If it could be read only once, a copy replaces it, and
C<psgix.input.buffered> is set. A chunked body is decoded.

=head1 METHODS

=over

=item new(OPTIONS)

Returns a parser for any number of requests. These are the limits. 0 means no limit:

    max_body_bytes       0           the whole body; servers have such a limit, too
    max_form_bytes       8388608     a urlencoded form
    max_json_bytes       8388608     JSON
    max_parts            1000        parts of multipart/form-data
    max_part_head_bytes  16384       header fields of a part
    max_fields_bytes     8388608     all parts that are not files, which are kept in memory

C<buffer_length> (262144) is the number of bytes that are read at once.

=item register(MEDIA_TYPE, CLASS, OPTIONS)

After the first call, only registered media types are parsed. CLASS is C<UrlEncoded>, C<MultiPart>
or C<JSON>, with or without C<HTTP::Entity::Parser::> in front. It may also be any class that has
C<new($env, $options)>, C<add($bytes)> and C<finalize> as those have. OPTIONS are passed on to it.

=item parse(ENV)

Returns two references: to a list of names and values, and to a list of names and uploads. An upload
is a hash with C<name>, C<filename>, C<headers>, C<size> and C<tempname>. The latter is the file,
which is removed with ENV. All values are bytes. A body of another media type gives two empty lists.

Dies with a L<Kirin::RequestBody::Error> if the body is malformed (400) or over a limit (413).

=item fill(ENV)

Parses and sets C<plack.request.body_parameters>, C<plack.request.upload> and, if it is missing,
C<plack.request.query_parameters>.

=back

=head1 FUNCTIONS

=over

=item Kirin::RequestBody::query(ENV)

Returns a reference to the names and values of the query.

=back

=cut
