package Kirin::RequestBody::MultiPart;
use v5.16;
use warnings;

use Errno qw(EINTR);
use Fcntl qw(O_CREAT O_EXCL O_WRONLY);
use File::Temp ();
use Kirin::RequestBody::Error;

# The most bytes before the first boundary. Browsers send nothing there.
use constant PREAMBLE_BYTES => 32 * 1024;

use constant CRLF => "\r\n";

use constant DEFAULT => (
    max_parts           => 1000,
    max_part_head_bytes => 16 * 1024,
    max_fields_bytes    => 8 * 1024 * 1024,
);

sub new {
    my ($class, $env, $option) = @_;
    my $boundary = boundary($env->{CONTENT_TYPE} // '');
    return bless {
        env => $env,
        DEFAULT,
        $option ? %$option : (),
        delimiter => CRLF . "--$boundary",
        # The line end belongs to the delimiter. The first delimiter may be without one.
        buffer       => CRLF,
        at           => 0,
        state        => 'preamble',
        parts        => 0,
        fields_bytes => 0,
        params       => [],
        uploads      => [],
    }, $class;
}

# RFC 2046 section 5.1.1, without the space, which needs quotes and which no client uses.
sub boundary {
    my $type = shift;
    my ($quoted, $token) = $type =~ /[;\s]boundary=(?:"([^"]*)"|([^\s";]*))\s*(?:;|\z)/
        or Kirin::RequestBody::Error->bad("no boundary in $type");
    my $boundary = $quoted // $token;
    $boundary =~ m{\A[0-9A-Za-z'()+_,./:=?-]{1,70}\z}
        or Kirin::RequestBody::Error->bad("bad boundary in $type");
    return $boundary;
}

# Takes the next bytes of the body.
sub add {
    my $self = shift;
    $self->{buffer} .= $_[0];
    while (1) {
        my $state = $self->{state};
        # Each step returns the next state, or nothing if it needs more bytes.
        $self->{state} = $self->$state // last;
    }
    substr $self->{buffer}, 0, $self->{at}, '';
    $self->{at} = 0;
}

sub finalize {
    my $self = shift;
    Kirin::RequestBody::Error->bad("multipart/form-data ends too early: $self->{state}")
        if $self->{state} ne 'epilogue';
    return @$self{qw(params uploads)};
}

sub preamble {
    my $self = shift;
    my $found = index $self->{buffer}, substr($self->{delimiter}, 2), $self->{at};
    # Bytes that look like the start of a boundary may become one.
    my $length = ($found < 0 ? length($self->{buffer}) - length($self->{delimiter}) + 3 : $found) -
        $self->{at};
    Kirin::RequestBody::Error->bad('too much before the first boundary')
        if $length > PREAMBLE_BYTES;
    return if $found < 0;
    Kirin::RequestBody::Error->bad('the first boundary does not begin a line')
        if substr($self->{buffer}, $found - 2, 2) ne CRLF;
    $self->{at} = $found + length($self->{delimiter}) - 2;
    return 'delimiter_end';
}

# Behind a boundary there is a line end and a part, or hyphens, a line end and nothing.
sub delimiter_end {
    my $self = shift;
    my $next = substr $self->{buffer}, $self->{at}, 4;
    if (substr($next, 0, 2) eq CRLF) {
        my $limit = $self->{max_parts};
        Kirin::RequestBody::Error->too_large("more than $limit parts")
            if $limit && ++$self->{parts} > $limit;
        $self->{at} += 2;
        return 'head';
    }
    if ($next eq '--' . CRLF) {
        $self->{at} += 4;
        return 'epilogue';
    }
    return if length $next < 2 || length $next < 4 && index('--' . CRLF, $next) == 0;
    Kirin::RequestBody::Error->bad('a boundary does not end in a line end');
}

sub head {
    my $self = shift;
    my $end = index $self->{buffer}, CRLF . CRLF, $self->{at};
    my $limit = $self->{max_part_head_bytes};
    my $length = ($end < 0 ? length($self->{buffer}) - 3 : $end) - $self->{at};
    Kirin::RequestBody::Error->too_large("head of a part of more than $limit bytes")
        if $limit && $length > $limit;
    return if $end < 0;
    my $head = substr $self->{buffer}, $self->{at}, $length;
    $self->{at} = $end + 4;
    # Browsers send a field in this form.
    if ($head =~ /\AContent-Disposition: form-data; name="([^"\\\x00\r\n]*)"\z/) {
        $self->{part} = { name => $1, data => '' };
    }
    else {
        $self->begin_part(header_lines($head));
    }
    return 'body';
}

# Returns one string for each field. A line that starts with white space continues the previous one.
sub header_lines {
    my @lines;
    for my $line (split /\r\n/, $_[0], -1) {
        if ($line =~ /\A[^\x00-\x1f\x7f:]+:[^\x00\r\n]*\z/) {
            push @lines, $line;
        }
        elsif (@lines && $line =~ /\A[\t ]+([^\x00\r\n]*)\z/) {
            my $more = $1;
            next if $more eq '';
            # This removes only the last character, because a line may continue thousands of times.
            $lines[-1] .= ' ' if substr($lines[-1], -1) !~ /[\t ]/;
            $lines[-1] .= $more;
        }
        else {
            Kirin::RequestBody::Error->bad('malformed header line in a part');
        }
    }
    return @lines;
}

# Splits a header line at its colon.
sub name_and_value {
    my ($name, $value) = split /:/, $_[0], 2;
    return (without_space($name), $value =~ s/\A\s+//r);
}

# Removes white space at the end. s/\s+\z// would start again at each space of a run in the middle.
sub without_space { $_[0] =~ /\A(.*\S)/s ? $1 : '' }

sub begin_part {
    my ($self, @lines) = @_;
    my ($disposition) = map { /\AContent-Disposition:[\t ]*(.*)/si ? $1 : () } @lines;
    my ($name, $filename) = defined $disposition ? disposition($disposition) : ();
    Kirin::RequestBody::Error->bad('a part has no name') if !defined $name;
    $self->{part} =
        { name => $name, filename => $filename, lines => \@lines, bytes => 0, data => '' };
    $self->open_file if length($filename // '');
}

# Returns name and filename of form-data. Quoted values stay unchanged, because browsers put paths
# with backslashes into them and percent-encode quotes. No pattern may backtrack over white space.
# With 16 KB of it, each try would read all of it.
sub disposition {
    my $text = shift;
    return ($1, $2) if $text =~ /\Aform-data; name="([^"\\]*)"(?:; filename="([^"\\]*)")?\z/;
    $text = without_space($text);
    $text =~ /\A\s*+form-data\s*+;/gci or return;
    my %value;
    until ($text =~ /\G\z/gc) {
        # There is nothing, or a word without a value.
        next if $text =~ /\G\s*+[^\s"=;]*+\s*+;/gc;
        $text =~
            /\G\s*+([^\s"=;]++)\s*+=\s*+(?:"([^"]*+(?:(?<=\\)"[^"]*+)*?)"|([^\s";]*+))\s*+(?:;|\z)/gc
            or return;
        my ($key, $value) = (lc $1, $2 // $3);
        next if $key ne 'name' && $key ne 'filename';
        return if exists $value{$key};
        $value{$key} = $value;
    }
    return @value{qw(name filename)};
}

sub body {
    my $self = shift;
    my $found = index $self->{buffer}, $self->{delimiter}, $self->{at};
    my $length =
        $found < 0
        ? length($self->{buffer}) - length($self->{delimiter}) + 1 - $self->{at}
        : $found - $self->{at};
    if ($length > 0) {
        $self->take($length);
        $self->{at} += $length;
    }
    return if $found < 0;
    $self->{at} += length $self->{delimiter};
    $self->end_part;
    return 'delimiter_end';
}

# Takes the next bytes of a part.
sub take {
    my ($self, $length) = @_;
    my $part = $self->{part};
    if ($part->{file}) {
        $part->{bytes} += $length;
        my $offset = $self->{at};
        while ($length > 0) {
            my $count = syswrite $part->{file}, $self->{buffer}, $length, $offset;
            next if !defined $count && $! == EINTR;
            die "$part->{tempname}: $!\n" if !defined $count;
            $length -= $count;
            $offset += $count;
        }
    }
    # This is a field for a file, and no file was chosen.
    elsif (!defined $part->{filename}) {
        my $limit = $self->{max_fields_bytes};
        $self->{fields_bytes} += $length;
        Kirin::RequestBody::Error->too_large("fields of more than $limit bytes")
            if $limit && $self->{fields_bytes} > $limit;
        $part->{data} .= substr $self->{buffer}, $self->{at}, $length;
    }
}

sub end_part {
    my $self = shift;
    my $part = delete $self->{part};
    if ($part->{file}) {
        close $part->{file} or die "$part->{tempname}: $!\n";
        push @{ $self->{uploads} }, $part->{name}, {
            name     => $part->{name},
            headers  => [map { name_and_value($_) } @{ $part->{lines} }],
            size     => $part->{bytes},
            filename => $part->{filename},
            tempname => $part->{tempname},
        };
    }
    elsif (!defined $part->{filename}) {
        push @{ $self->{params} }, $part->{name}, $part->{data};
    }
}

# The directory goes with the environment, and the files with it.
sub open_file {
    my $self = shift;
    my $directory = $self->{env}{'kirin.request_body.directory'} //=
        File::Temp->newdir('kirin-upload-XXXXXXXX', TMPDIR => 1);
    my $part = $self->{part};
    $part->{tempname} = "$directory/" . $self->{files}++;
    sysopen $part->{file}, $part->{tempname}, O_WRONLY | O_CREAT | O_EXCL, 0600
        or die "$part->{tempname}: $!\n";
    binmode $part->{file};
}

# Nothing may follow the last boundary. RFC 9110 has no place for an epilogue, and it may be the
# second message of an attack.
sub epilogue {
    my $self = shift;
    return if $self->{at} == length $self->{buffer};
    Kirin::RequestBody::Error->bad('bytes after the last boundary');
}

1;

__END__

=head1 NAME

Kirin::RequestBody::MultiPart - multipart/form-data

=head1 SYNOPSIS

    # also in the place of HTTP::Entity::Parser::MultiPart
    $http_entity_parser->register('multipart/form-data', 'Kirin::RequestBody::MultiPart', { max_parts => 100 });

=head1 DESCRIPTION

The parser for uploads of L<Kirin::RequestBody>. It takes the body in pieces of any size. Files go
to disk as they arrive, into their own directory, which is removed with the environment of the
request.

It refuses a body that ends before its last boundary or continues after it, a boundary that is not
at the start of a line or is followed by anything but a line end, a malformed or missing header,
control characters in one, a part without a name, a boundary parameter that RFC 2046 does not allow,
and everything over a limit.

=cut
