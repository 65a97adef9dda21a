use v5.16;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

# Compares Kirin::RequestBody with HTTP::Entity::Parser on the cases of Kossy's benchmarks: a
# request without parameters, a GET with parameters and POSTs with parameters. Each time query and
# body are parsed, as a framework does it.
#
#     perl adapters/perl/bench/request_body.pl                              # with XS if it is installed
#     WWW_FORM_URLENCODED_PP=1 perl adapters/perl/bench/request_body.pl     # in Perl only
#
# `with front` is the case of a Kirin worker: the query and the form arrive parsed
# (docs/worker-protocol.md).

use Benchmark qw(cmpthese);
use HTTP::Entity::Parser;
use Kirin::RequestBody;
use Kirin::RequestBody::JSON;
use Kirin::RequestBody::MultiPart;
use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);
use WWW::Form::UrlEncoded qw(parse_urlencoded_arrayref);

# The rounds are interleaved, and the least CPU time counts. So other processes on the machine
# matter little.
use constant ROUNDS        => $ENV{ROUNDS} // 20;
use constant ROUND_SECONDS => 0.01;

my $FIVE = 'a=1&b=two&c=three%20words&d=4&e=%E9%BA%92%E9%BA%9F';
my $FORM = 'application/x-www-form-urlencoded';
my %value = map { $_ => "value+of+$_%21" } 'a' .. 'z';

sub form_of {
    my ($pairs, $length) = @_;
    my $form = join '&', map { "name$_=" . 'value%20' . $_ x 3 } 1 .. $pairs;
    return $form . 'x' x ($length - length $form);
}

my $parts = join '',
    map { "--B\r\nContent-Disposition: form-data; name=\"$_\"\r\n\r\n$value{$_}\r\n" } 'a' .. 'e';
my $file =
    "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n";

my @shapes = (
    ['no parameter', env()],
    ['GET with parameters', env(QUERY_STRING => $FIVE)],
    ['POST with parameters, 38 bytes', post($FORM, form_of(2, 38))],
    ['POST with parameters, 177 bytes', post($FORM, form_of(8, 177))],
    ['POST with parameters, 1997 bytes', post($FORM, form_of(80, 1997))],
    ['POST, GET with parameters', post($FORM, $FIVE, QUERY_STRING => $FIVE)],
    [
        'POST of JSON',
        post('application/json', '{"a":1,"b":"two","c":["three","words"],"d":{"e":"\u9e92"}}')
    ],
    ['POST of 5 parts', post('multipart/form-data; boundary=B', "$parts--B--\r\n")],
    [
        'POST of 5 parts and a file of 100 KB',
        post('multipart/form-data; boundary=B', $parts . $file . 'x' x 100_000 . "\r\n--B--\r\n")
    ],
);

sub env {
    my %more = @_;
    open my $input, '<', \'' or die $!;
    return {
        REQUEST_METHOD  => 'GET', SCRIPT_NAME    => '', PATH_INFO => '/', QUERY_STRING => '',
        SERVER_PROTOCOL => 'HTTP/1.1', HTTP_HOST => 'x',
        'psgi.input'    => $input, 'psgix.input.buffered' => 1, %more,
    };
}

sub post {
    my ($type, $body, %more) = @_;
    open my $input, '<', \$body or die $!;
    return env(
        REQUEST_METHOD => 'POST', CONTENT_TYPE => $type, CONTENT_LENGTH => length $body,
        'psgi.input'   => $input, BODY         => \$body, %more
    );
}

# Adds the values of the front.
sub with_front {
    my %env = %{ $_[0] };
    my $query = $env{QUERY_STRING};
    $env{'kirin.query'} = join "\x1f", $query, @{ parse_urlencoded_arrayref($query) }
        if $query ne '';
    if (($env{CONTENT_TYPE} // '') eq $FORM) {
        $env{'kirin.form'} = join "\x1f", $env{CONTENT_LENGTH},
            @{ parse_urlencoded_arrayref(${ $env{BODY} }) };
        $env{'kirin.form.input'} = $env{'psgi.input'};
    }
    return \%env;
}

my @TYPES = (
    [$FORM                 => 'HTTP::Entity::Parser::UrlEncoded'],
    ['multipart/form-data' => 'HTTP::Entity::Parser::MultiPart'],
    ['application/json'    => 'HTTP::Entity::Parser::JSON'],
);

my $theirs = HTTP::Entity::Parser->new(buffer_length => 1024 * 1024);
$theirs->register(@$_) for @TYPES;
my $ours = Kirin::RequestBody->new;

printf "%s, Perl %vd, HTTP::Entity::Parser %s, WWW::Form::UrlEncoded %s\n", scalar gmtime, $^V,
    HTTP::Entity::Parser->VERSION,
    defined &WWW::Form::UrlEncoded::PP::parse_urlencoded_arrayref
    ? 'in Perl'
    : "XS $WWW::Form::UrlEncoded::XS::VERSION";

for my $shape (@shapes) {
    my ($name, $env) = @$shape;
    my $front = with_front($env);
    my %way = (
        # Plack::Request makes a parser for each request, too.
        'entity, new' => sub {
            my %env = %$env;
            my $query = parse_urlencoded_arrayref($env{QUERY_STRING});
            my $parser = HTTP::Entity::Parser->new(buffer_length => 1024 * 1024);
            $parser->register(@$_) for @TYPES;
            return ($query, $parser->parse(\%env));
        },
        'entity' => sub {
            my %env = %$env;
            return (parse_urlencoded_arrayref($env{QUERY_STRING}), $theirs->parse(\%env));
        },
        'kirin' => sub {
            my %env = %$env;
            return (Kirin::RequestBody::query(\%env), $ours->parse(\%env));
        },
        'kirin, front' => sub {
            my %env = %$front;
            return (Kirin::RequestBody::query(\%env), $ours->parse(\%env));
        },
    );
    print "\n$name\n";
    cmpthese(least_times(\%way));
}

# Returns Benchmark objects, as timethese makes them.
sub least_times {
    my $way = shift;
    my (%count, %least);
    for my $round (0 .. ROUNDS) {
        for my $name (sort keys %$way) {
            my $code = $way->{$name};
            my $count = $count{$name} // 100;
            my $begin = clock_gettime(CLOCK_PROCESS_CPUTIME_ID);
            $code->() for 1 .. $count;
            my $each = (clock_gettime(CLOCK_PROCESS_CPUTIME_ID) - $begin) / $count;
            $count{$name} //= 1 + int(ROUND_SECONDS / $each);
            $least{$name} = $each if $round && (!$least{$name} || $each < $least{$name});
        }
    }
    return {
        map {
            my $seconds = $least{$_} * 1e6;
            $_ => bless [$seconds, $seconds, 0, 0, 0, 1e6], 'Benchmark'
        } keys %least
    };
}
