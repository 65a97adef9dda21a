package Kirin::Worker::Parsed;
use v5.16;
use warnings;

use Scalar::Util qw(refaddr);

# Methods of Plack::Request that are replaced, and others that the result of a body depends on.
use constant REPLACED => qw(_query_parameters _body_parameters cookies);
use constant BODY     => qw(_parse_request_body request_body_parser _build_body_parser);

# Plack::Request reads bodies in pieces of this size. For longer ones a shortcut is not worth it.
use constant BODY_BYTES => 1024 * 1024;

use constant FORM_TYPE => 'application/x-www-form-urlencoded';

my (%plack, %parses_as_plack, %wanted);

# The values that the front is asked for.
sub wanted {
    return if ($ENV{KIRIN_PARSED} // 1) eq '0';
    speed_up_plack_request() if !%plack && $INC{'Plack/Request.pm'};
    return sort keys %wanted;
}

sub want { @wanted{@_} = (1) x @_ }

# Returns names and values of the query, if the front has parsed the present one.
sub query {
    my $env = shift;
    return if !defined $env->{'kirin.query'};
    my @parsed = split /\x1f/, $env->{'kirin.query'}, -1;
    return shift(@parsed) eq ($env->{QUERY_STRING} // '') ? \@parsed : undef;
}

# Returns cookies by name, if the front has parsed the present ones.
sub cookies {
    my $env = shift;
    return if !defined $env->{'kirin.cookies'};
    my ($field, %parsed) = split /\x1f/, $env->{'kirin.cookies'}, -1;
    return $field eq ($env->{HTTP_COOKIE} // '') ? \%parsed : undef;
}

# Returns names and values of a form, if the front has parsed the present body. psgi.input is at its
# start then.
sub form {
    my $env = shift;
    return if !defined $env->{'kirin.form'};
    my @parsed = split /\x1f/, $env->{'kirin.form'}, -1;
    my ($input, $own) = @$env{qw(psgi.input kirin.form.input)};
    return if !ref $input || !ref $own || refaddr($input) != refaddr $own;
    return
        if shift(@parsed) ne ($env->{CONTENT_LENGTH} // '')
        || index($env->{CONTENT_TYPE} // '', FORM_TYPE) != 0;
    return seek($input, 0, 0) ? \@parsed : undef;
}

# Puts the front's parse where Plack::Request keeps its own in the environment. Checks each time
# whether an application or middleware has changed the text that was parsed.
sub speed_up_plack_request {
    return if grep { !Plack::Request->can($_) } REPLACED, BODY;
    $plack{$_} = Plack::Request->can($_) for REPLACED, BODY;
    no warnings 'redefine';
    *Plack::Request::_query_parameters = \&plack_query_parameters;
    *Plack::Request::_body_parameters = \&plack_body_parameters;
    *Plack::Request::cookies = \&plack_cookies;
    # The front parses as these two modules do. Their variants in C are about as fast as taking over
    # the front's parse.
    want(qw(query form))
        if \&Plack::Request::parse_urlencoded_arrayref ==
        \&WWW::Form::UrlEncoded::PP::parse_urlencoded_arrayref;
    want('cookies') if \&Cookie::Baker::crush_cookie == \&Cookie::Baker::pp_crush_cookie;
}

sub plack_query_parameters {
    my $env = $_[0]->env;
    if (!$env->{'plack.request.query_parameters'} && (my $parameters = query($env))) {
        return $env->{'plack.request.query_parameters'} = $parameters;
    }
    goto &{ $plack{_query_parameters} };
}

sub plack_cookies {
    my $env = $_[0]->env;
    if (!$env->{'plack.cookie.parsed'} && (my $cookies = cookies($env))) {
        $env->{'plack.cookie.string'} = $env->{HTTP_COOKIE};
        return $env->{'plack.cookie.parsed'} = $cookies;
    }
    goto &{ $plack{cookies} };
}

sub plack_body_parameters {
    my $self = $_[0];
    my $env = $self->env;
    return $env->{'plack.request.body_parameters'} if $env->{'plack.request.body_parameters'};
    my $parameters = parses_as_plack($self) ? body($env) : undef;
    goto &{ $plack{_body_parameters} } if !$parameters;
    $env->{'plack.request.upload'} = Hash::MultiValue->create;
    return $env->{'plack.request.body_parameters'} = $parameters;
}

# Returns whether Plack::Request itself parses a request, and not a subclass or another parser.
sub parses_as_plack {
    my $self = shift;
    my $class = ref $self;
    $parses_as_plack{$class} //= !grep { $class->can($_) != $plack{$_} } BODY;
    return $parses_as_plack{$class} && !$self->{request_body_parser};
}

# Does the same as HTTP::Entity::Parser for no body and for a form, without the work around it.
sub body {
    my $env = shift;
    my $input = $env->{'psgi.input'};
    return if !$input || !$env->{'psgix.input.buffered'} || exists $env->{HTTP_TRANSFER_ENCODING};
    my $type = $env->{CONTENT_TYPE} // '';
    if (!$env->{CONTENT_LENGTH}) {
        return if index($type, 'multipart/form-data') == 0;
        $input->seek(0, 0);
        return [];
    }
    my $form = form($env);
    return $form
        if $form || index($type, FORM_TYPE) != 0 || $env->{CONTENT_LENGTH} !~ /\A[1-9][0-9]{0,6}\z/;
    return if $env->{CONTENT_LENGTH} > BODY_BYTES;
    $input->seek(0, 0);
    $input->read(my $content, $env->{CONTENT_LENGTH});
    return if length $content != $env->{CONTENT_LENGTH};
    $input->seek(0, 0);
    return Plack::Request::parse_urlencoded_arrayref($content);
}

1;

__END__

=head1 NAME

Kirin::Worker::Parsed - gives Plack::Request the values that the front has parsed

=head1 SYNOPSIS

    # Unmodified applications get it from Plack::Request:
    my $parameters = Plack::Request->new($env)->parameters;

    # Others can have it, too:
    Kirin::Worker::Parsed::want('cookies');      # before the worker takes its first connection
    my $cookies = Kirin::Worker::Parsed::cookies($env) || Cookie::Baker::crush_cookie($env->{HTTP_COOKIE});

=head1 DESCRIPTION

Kirin's front parses the query, a form and the cookies of a request when a worker asks for it in its
greeting. They come as one value each: C<kirin.query>, C<kirin.form> and C<kirin.cookies>. They are
split only when the application looks. An application that uses no parameters pays for an entry in a
hash.

When L<Plack::Request> is loaded, a worker replaces three of its methods (C<_query_parameters>,
C<_body_parameters> and C<cookies>). They put the front's parse where Plack::Request keeps its own
(C<plack.request.query_parameters>, C<plack.request.body_parameters>, C<plack.cookie.parsed>). They
do so only if it is the parse of the present text, because middleware may have changed
C<QUERY_STRING>, C<HTTP_COOKIE>, C<CONTENT_TYPE>, C<CONTENT_LENGTH> or C<psgi.input>. Otherwise
Plack::Request parses itself. It also does so for subclasses with their own parser, and in versions
of Plack with other methods. C<psgi.input> can be read afterwards as with Plack.

C<KIRIN_PARSED=0> in the environment turns all of this off.

The front parses exactly as L<WWW::Form::UrlEncoded::PP> and L<Cookie::Baker> do. If their variants
in C (C<WWW::Form::UrlEncoded::XS>, C<Cookie::Baker::XS>) are installed, Plack::Request uses those,
and the worker does not ask the front.

=head1 FUNCTIONS

=over

=item want(NAMES)

Asks the front for C<query>, C<form> or C<cookies>, from the worker's next connection on.

=item query(ENV), form(ENV), cookies(ENV)

Returns the values that the front has parsed, decoded and as bytes: references to a list of names
and values, and to a hash. Returns nothing if the front was not asked, if there is no such text, if
it is longer than 8 KiB, if a value contains a NUL or the byte 0x1F, or if ENV has changed since.

=back

=cut
