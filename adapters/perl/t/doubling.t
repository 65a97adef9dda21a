# Parsers of untrusted bytes must take time in proportion to the length, not to its square. Eight
# times the input should take eight times as long, and must take less than 24 times as long. The
# least processor time of several runs counts.
use v5.16;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);

use Kirin::RequestBody;
use Kirin::RequestBody::Form;
use Kirin::RequestBody::MultiPart;
use Kirin::Worker::Parsed;

use constant { TIMES => 8, MOST => 24, LEAST_SECONDS => 0.002, RUNS => 20 };

sub seconds {
    my ($repeats, $parse, $input) = @_;
    my $start = clock_gettime(CLOCK_PROCESS_CPUTIME_ID);
    $parse->($input) for 1 .. $repeats;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID) - $start;
}

sub is_linear {
    my ($name, $small, $shape, $parse) = @_;
    my ($one, $other) = ($shape->($small), $shape->($small * TIMES));
    my $repeats = 1;
    $repeats *= 2 while $repeats < 1 << 16 && seconds($repeats, $parse, $one) < LEAST_SECONDS;
    my ($less, $more) = (9**9, 9**9);
    for my $run (1 .. RUNS) {
        my ($this, $that) = (seconds($repeats, $parse, $one), seconds($repeats, $parse, $other));
        $less = $this if $this < $less;
        $more = $that if $that < $more;
        last if $run > 2 && $more < MOST * $less;
    }
    return cmp_ok $more / $less, '<', MOST, $name;
}

for my $piece ('a=b&', '&', ';', '=', '%41', '%', '+', '& ', '%4', 'a') {
    is_linear(
        "form $piece", 500, sub { $piece x shift },
        sub { Kirin::RequestBody::Form::decode_in_perl($_[0]) }
    );
    is_linear(
        "form that the front has parsed $piece", 500, sub { "\x1f$piece" x shift },
        sub { Kirin::Worker::Parsed::query({ 'kirin.query' => $_[0], QUERY_STRING => '' }) }
    );
    is_linear(
        "cookies that the front has parsed $piece", 500, sub { "\x1f$piece" x shift },
        sub { Kirin::Worker::Parsed::cookies({ 'kirin.cookies' => $_[0], HTTP_COOKIE => '' }) }
    );
}

sub multipart {
    my ($body, $pieces) = @_;
    my $parser = Kirin::RequestBody::MultiPart->new(
        { CONTENT_TYPE => 'multipart/form-data; boundary=B' },
        { max_parts    => 0, max_part_head_bytes => 0 }
    );
    return eval {
        if ($pieces) {
            $parser->add($_) for unpack "(a$pieces)*", $body;
        }
        else {
            $parser->add($body);
        }
        $parser->finalize;
    };
}

sub part { "--B\r\n$_[0]\r\n\r\nx\r\n--B--\r\n" }

my $field = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n";
is_linear('multipart, parts', 100, sub { $field x shift() . "--B--\r\n" }, \&multipart);
is_linear(
    'multipart, parts in pieces', 100, sub { $field x shift() . "--B--\r\n" },
    sub { multipart($_[0], 100) }
);
for my $piece ("\r\n--", '-', "\r", "\n", "\r\n", "--B", "x") {
    my $begin = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
    is_linear(
        'multipart, a value of ' . ($piece =~ s/[\r\n]/./gr), 500,
        sub { $begin . $piece x shift() . "\r\n--B--\r\n" }, \&multipart
    );
    is_linear(
        'multipart, before it ' . ($piece =~ s/[\r\n]/./gr), 500, sub { $piece x shift() },
        \&multipart
    );
}
for my $piece (
    ' ', ';', '; ', 'a=', 'a;', 'a=b;', '"', '\\"', 'a="\\"', '= ', "\t", '\\" ',
    'name ', '; a="b" '
    )
{
    for my $begin (
        'form-data', 'form-data;', 'form-data; name="', 'form-data; name=',
        'form-data; filename=f'
        )
    {
        is_linear(
            "disposition $begin$piece", 500, sub { $begin . $piece x shift() . '"x;' },
            sub { [Kirin::RequestBody::MultiPart::disposition($_[0])] }
        );
    }
    is_linear(
        "content type $piece", 500,
        sub { 'multipart/form-data;boundary=' . $piece x shift() . 'x' },
        sub {
            eval { Kirin::RequestBody::MultiPart::boundary($_[0]) }
        }
    );
    is_linear(
        "content types $piece", 200, sub { "multipart/form-data;boundary=\"$piece" x shift() },
        sub {
            eval { Kirin::RequestBody::MultiPart::boundary($_[0]) }
        }
    );
}
my $file = 'Content-Disposition: form-data; name="a"; filename="f"';
for my $line ('X: y', ' x', "\t", 'X:', " \t ") {
    is_linear(
        "head of lines $line", 200, sub { part("$file\r\n" . join "\r\n", ($line) x shift) },
        \&multipart
    );
}
for my $piece (' ', "\t", 'a ', ':', 'a') {
    is_linear(
        "header name of $piece", 1000,
        sub { part("$file\r\nX" . $piece x shift() . "y: z") }, \&multipart
    );
    is_linear(
        "header value of $piece", 1000,
        sub { part("$file\r\nX: " . $piece x shift() . "y") }, \&multipart
    );
}

for my $chunk ("1\r\nx\r\n", "1;a=b\r\nx\r\n", "001\r\nx\r\n") {
    is_linear(
        'chunks ' . ($chunk =~ s/[\r\n]/./gr),
        300,
        sub { $chunk x shift() . "0\r\n\r\n" },
        sub {
            my $text = shift;
            open my $input, '<', \$text or die $!;
            my $env = {
                CONTENT_TYPE => 'text/plain', HTTP_TRANSFER_ENCODING => 'chunked',
                'psgi.input' => $input
            };
            Kirin::RequestBody->new->parse($env);
        }
    );
}

done_testing;
