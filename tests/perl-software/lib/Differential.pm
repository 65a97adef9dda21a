package Differential;
use v5.16;
use warnings;

use Digest::SHA ();
use HTTP::Cookies;
use HTTP::Request::Common ();
use LWP::UserAgent;
use Test::More;

# One session of a browser with two servers that serve the same application: what both answer must be the same.
#
#     my $session = Differential->new(kirin => $kirin, starlet => $starlet);
#     my $answer  = $session->step('the form', GET => '/', status => 200, body => qr/<form/);
#     $session->step('send it', POST => '/memo', content => [text => 'x'], status => 302);
#
# Every step says what it expects too: two servers that fail alike have shown nothing.

# Both are asked for the same site, so that absolute links are the same.
use constant SITE => 'memo.example';

# Fields that are the server's own and not the application's.
my %OF_THE_SERVER = map { $_ => 1 } qw(connection date keep-alive server transfer-encoding);

# What Kirin may say and the other does not: a length, since how a body is framed is between server and client, and what a file
# server tells of a file. Where the other says it, so must Kirin.
my @ADDED = qw(content-length accept-ranges etag last-modified);

# Two servers by name, Kirin's name being the first of both.
sub new {
    my ($class, %servers) = @_;
    my $self = bless { names => [sort keys %servers] }, $class;
    for my $name (@{ $self->{names} }) {
        my $agent = LWP::UserAgent->new(
            keep_alive => 1,
            parse_head => 0,
            timeout    => 20,
            cookie_jar => HTTP::Cookies->new,
            agent      => 'differential/1',
        );
        $self->{agents}{$name} = $agent;
        $self->{servers}{$name} = $servers{$name};
    }
    return $self;
}

# Sends the same request to both. `content` is as for HTTP::Request::Common, `fields` are more field lines. `status`,
# `body`, `field => [NAME, VALUE]` are what is expected. `random` is a pattern for what no two runs have in common.
# `framework_fields => 0` leaves the fields out of the comparison: the front has answered by itself, with the file.
# `refused_by_front => 1` compares nothing: Kirin does not pass such a request on. Returns Kirin's response.
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
        # A target that climbs out of the site is nothing that an application gets to see.
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

# Something out of the last answer of each server, such as a token of a form, for the next request.
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

# What has to be the same.
sub essence {
    my ($answer, $step) = @_;
    # Compressed bytes hold the time of their making.
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
        # In the order of a hash, in Catalyst.
        @values = sort map { cookie($_) } @values if $name eq 'set-cookie';
        do { s/$step->{random}/RANDOM/g for @values } if $step->{random};
        $fields{$name} = \@values;
    }
    delete $fields{'content-length'} if $step->{random};
    return { status => $answer->code, fields => \%fields, content => $content };
}

# A cookie without what depends on the moment or on chance: its value if that is long, and when it expires.
sub cookie {
    my ($name, $value, $attributes) = $_[0] =~ /^([^=]+)=([^;]*)(.*)/s or return $_[0];
    $value = 'RANDOM' if length $value > 20;
    $attributes =~ s/(expires=)[^;]+/$1WHEN/i;
    return "$name=$value$attributes";
}

# Connections first: Starlet ends when its workers have none.
sub DESTROY { delete $_[0]{agents} }

1;
