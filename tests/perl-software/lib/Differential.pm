package Differential;
use v5.16;
use warnings;

use Digest::SHA ();
use HTTP::Cookies;
use HTTP::Request::Common ();
use LWP::UserAgent;
use Test::More;

# One browser session with two servers that serve the same application. Both must give the same
# responses.
#
#     my $session = Differential->new(kirin => $kirin, starlet => $starlet);
#     my $answer  = $session->step('the form', GET => '/', status => 200, body => qr/<form/);
#     $session->step('send it', POST => '/memo', content => [text => 'x'], status => 302);
#
# Every step also has its expected result, because two servers that fail alike would prove nothing.

# Both are asked for the same site, so that absolute links are the same.
use constant SITE => 'memo.example';

# Fields that belong to the server and not to the application.
my %OF_THE_SERVER = map { $_ => 1 } qw(connection date keep-alive server transfer-encoding);

# Fields that only Kirin may send: a length, because the framing of a body is a matter between
# server and client, and the fields of a file server. If the other server sends them, Kirin must
# send them too.
my @ADDED = qw(content-length accept-ranges etag last-modified);

# Two servers by name. The first name is Kirin's.
sub new {
    my ($class, %servers) = @_;
    my $self = bless { names => [sort keys %servers] }, $class;
    for my $name (@{ $self->{names} }) {
        my $agent = LWP::UserAgent->new(
            keep_alive => 1,
            parse_head => 0,
            timeout    => 20 * ($ENV{KIRIN_TEST_WAIT_FACTOR} || 1),
            cookie_jar => HTTP::Cookies->new,
            agent      => 'differential/1',
        );
        $self->{agents}{$name} = $agent;
        $self->{servers}{$name} = $servers{$name};
    }
    return $self;
}

# Sends the same request to both. `content` is as for HTTP::Request::Common, `fields` are more field
# lines. `status`, `body`, `field => [NAME, VALUE]` are what is expected. `random` is a pattern for
# what no two runs have in common. `framework_fields => 0` leaves the fields out of the comparison:
# the front has answered by itself, with the file. `refused_by_front => 1` compares nothing: Kirin
# does not pass such a request on. Returns Kirin's response.
sub step {
    my ($self, $what, $method, $target, %step) = @_;
    my %answers;
    my ($kirin, $other) = @{ $self->{names} };
    subtest $what => sub {
        for my $name ($kirin, $other) {
            my $content =
                ref $step{content} eq 'CODE' ? $step{content}->($self, $name) : $step{content};
            my $request = request(
                $method, $self->{servers}{$name}->url . $target, $content,
                $step{fields} || {}
            );
            $answers{$name} = $self->{agents}{$name}->simple_request($request);
            my $warning = $answers{$name}->header('Client-Warning') // '';
            is $warning, '', "$name has answered" or diag $self->{servers}{$name}->log;
        }
        is $answers{$kirin}->code, $step{status}, 'status'
            or diag $answers{$kirin}->as_string, $self->{servers}{$kirin}->log;
        like $answers{$kirin}->content, $step{body}, 'body' if $step{body};
        is $answers{$kirin}->header($step{field}[0]), $step{field}[1], "field $step{field}[0]"
            if $step{field};
        # An application never sees a target that climbs out of the site.
        return if $step{refused_by_front};
        my %essence = map { $_ => essence($answers{$_}, \%step) } $kirin, $other;
        for my $name (@ADDED) {
            delete $essence{$kirin}{fields}{$name} if !$essence{$other}{fields}{$name};
        }
        is_deeply $essence{$kirin}, $essence{$other}, "the same as from $other"
            or diag join "\n", map { "$_:\n" . substr $answers{$_}->as_string, 0, 2000 } $kirin,
            $other;
    };
    $self->{last} = \%answers;
    return $answers{$kirin};
}

# Returns a part of the last response of each server, such as a token of a form, for the next
# request.
sub of_last {
    my ($self, $name, $pattern) = @_;
    my ($found) = $self->{last}{$name}->content =~ $pattern;
    return $found // die "$pattern is not in:\n" . $self->{last}{$name}->as_string;
}

sub request {
    my ($method, $url, $content, $fields) = @_;
    my @fields = (Host => SITE, %$fields);
    my $make = HTTP::Request::Common->can($method);
    return $make->($url, @fields, Content => $content) if defined $content && $make;
    return $make->($url, @fields) if $make;
    return HTTP::Request->new($method, $url, \@fields, $content);
}

# Returns the parts that must be the same.
sub essence {
    my ($answer, $step) = @_;
    # Compressed bytes contain their time.
    my $content = $answer->decoded_content(charset => 'none');
    $content =~ s/$step->{random}/RANDOM/g if $step->{random};
    $content = 'SHA-1 ' . Digest::SHA::sha1_hex($content) . ', ' . length $content
        if length $content > 10_000;
    my %fields;
    for my $name (map { lc } $answer->header_field_names) {
        next if $OF_THE_SERVER{$name} || $name =~ /^client-/;
        next
            if defined $step->{framework_fields}
            && !$step->{framework_fields}
            && $name ne 'content-type';
        my @values = $answer->header($name);
        # In Catalyst the order is that of a hash.
        @values = sort map { cookie($_) } @values if $name eq 'set-cookie';
        do { s/$step->{random}/RANDOM/g for @values } if $step->{random};
        $fields{$name} = \@values;
    }
    delete $fields{'content-length'} if $step->{random};
    return { status => $answer->code, fields => \%fields, content => $content };
}

# Returns a cookie without the parts that depend on time or chance: its value if that is long, and
# its expiry.
sub cookie {
    my ($name, $value, $attributes) = $_[0] =~ /^([^=]+)=([^;]*)(.*)/s or return $_[0];
    $value = 'RANDOM' if length $value > 20;
    $attributes =~ s/(expires=)[^;]+/$1WHEN/i;
    return "$name=$value$attributes";
}

# The connections go first, because Starlet ends when its workers have none.
sub DESTROY { delete $_[0]{agents} }

1;
