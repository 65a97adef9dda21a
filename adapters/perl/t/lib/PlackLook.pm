package PlackLook;
use v5.16;
use warnings;

use Plack::Request;

# Returns Plack::Request's view of an environment after middleware has changed it. It is text, so
# that two processes can compare it: a line for each list, a word for each element.
#
#     my $seen = PlackLook::look($env, 'none');

my $OTHER = 'other=%21&other;third';

our %change = (
    none         => sub { },
    query        => sub { $_[0]{QUERY_STRING} = $OTHER },
    no_query     => sub { delete $_[0]{QUERY_STRING} },
    cookie       => sub { $_[0]{HTTP_COOKIE} = "$OTHER; x=y" },
    no_cookie    => sub { delete $_[0]{HTTP_COOKIE} },
    input        => sub { replace_input($_[0], $OTHER) },
    same_length  => sub { replace_input($_[0], 'x' x $_[0]{CONTENT_LENGTH}) },
    no_input     => sub { @{ $_[0] }{qw(psgi.input CONTENT_LENGTH)} = () },
    shorter      => sub { $_[0]{CONTENT_LENGTH}-- if $_[0]{CONTENT_LENGTH} },
    no_type      => sub { delete $_[0]{CONTENT_TYPE} },
    form_type    => sub { $_[0]{CONTENT_TYPE} = 'application/x-www-form-urlencoded' },
    part_type    => sub { $_[0]{CONTENT_TYPE} = 'multipart/form-data' },
    not_buffered => sub { delete $_[0]{'psgix.input.buffered'} },
    chunked      => sub { $_[0]{HTTP_TRANSFER_ENCODING} = 'chunked' if $_[0]{CONTENT_LENGTH} },
    half_read    => sub { read $_[0]{'psgi.input'}, my $some, 3 },
    # A separate environment, as for a request to another part of the application.
    copied     => sub { $_[0] = { %{ $_[0] }, QUERY_STRING => $OTHER } },
    own_parser => sub { $_[1]{request_body_parser} = HTTP::Entity::Parser->new },
    subclass   => sub { bless $_[1], 'PlackLook::WithoutForms' },
    parsed     => sub { $_[1]->parameters; $_[1]->cookies },
    # Plack does not notice a change of the query after it has parsed it, but it notices a change of
    # the cookies.
    parsed_before => sub {
        $_[1]->parameters;
        $_[1]->cookies;
        @{ $_[0] }{qw(QUERY_STRING HTTP_COOKIE)} = ($OTHER) x 2;
    },
);

sub replace_input {
    my ($env, $body) = @_;
    open my $input, '<', \$body or die $!;
    @$env{qw(psgi.input CONTENT_LENGTH)} = ($input, length $body);
}

sub look {
    my ($env, $change) = @_;
    my $request = Plack::Request->new($env);
    my $seen = eval {
        $change{$change}->($env, $request);
        $request = Plack::Request->new($env) if $env != $request->env;
        my @lists = $env->{REMOTE_PORT} % 2 ? [$request->parameters->flatten] : [];
        my $cookies = $request->cookies;
        push @lists, [map { $_ => $cookies->{$_} } sort keys %$cookies],
            [$request->query_parameters->flatten], [$request->body_parameters->flatten],
            [$request->parameters->flatten],
            [sort grep { /^plack/ } keys %$env];
        # This is the position at which reading continues.
        my $unread = $env->{'psgi.input'} && do { local $/; readline $env->{'psgi.input'} }
            // '';
        push @lists,
            [
            $unread, $request->content, $env->{'plack.cookie.string'},
            @$env{qw(CONTENT_LENGTH HTTP_TRANSFER_ENCODING)}
            ],
            [$request->uploads->flatten], [$request->body_parameters->flatten];
        join "\n", map {
            join ' ',
                map { defined $_ ? '=' . s/([\\ \n])/sprintf '\\x%02x', ord $1/ger : '-' } @$_
        } @lists;
    };
    return $seen // 'died: ' . $@ =~ s/ at \S+ line .*//sr;
}

package PlackLook::WithoutForms;
our @ISA = 'Plack::Request';

sub _build_body_parser { HTTP::Entity::Parser->new }

1;
