use v5.16;
use warnings;

use Data::Dumper;
use HTTP::Entity::Parser;
use Kirin::RequestBody;
use Kirin::RequestBody::MultiPart;
use Test::More;
use WWW::Form::UrlEncoded::PP;

# Gives the same bodies to HTTP::Entity::Parser and to Kirin::RequestBody. Kirin::RequestBody must
# refuse the same bodies, and give the same result for bodies that both accept. A body that only
# HTTP::Entity::Parser accepts must be one that is refused on purpose.

use constant BODIES => 4_000;
use constant SEED   => 4;

my %ON_PURPOSE = (
    'the first boundary does not begin a line' =>
        sub { $_[0] !~ /(?:\A|\r\n)--B/ || $_[0] =~ /\A(?!--B)/ },
    'malformed header line in a part' => sub { $_[0] =~ /[\x00]|\r(?!\n)|(?<!\r)\n/ },
);

my $ours = Kirin::RequestBody->new;
my $theirs = HTTP::Entity::Parser->new;
$theirs->register(@$_)
    for (
    ['application/x-www-form-urlencoded', 'HTTP::Entity::Parser::UrlEncoded'],
    ['multipart/form-data', 'HTTP::Entity::Parser::MultiPart'],
    ['application/json', 'HTTP::Entity::Parser::JSON'],
    );

sub env {
    my ($type, $body, %more) = @_;
    open my $input, '<', \$body or die $!;
    return {
        CONTENT_TYPE           => $type, CONTENT_LENGTH => length $body, 'psgi.input' => $input,
        'psgix.input.buffered' => 1, %more
    };
}

# Returns results as text. The order of JSON's members is random.
sub as_text {
    my ($params, $uploads) = @_;
    my @uploads = @$uploads;
    my @seen;
    while (my ($name, $upload) = splice @uploads, 0, 2) {
        my %upload = %$upload;
        open my $file, '<:raw', delete $upload{tempname} or die $!;
        $upload{content} = do { local $/; readline $file }
            // '';
        push @seen, [$name, \%upload];
    }
    local ($Data::Dumper::Terse, $Data::Dumper::Useqq, $Data::Dumper::Sortkeys) = (1, 1, 1);
    return Data::Dumper::Dumper($params, \@seen);
}

sub result_of {
    my ($parser, $env) = @_;
    no warnings;
    my ($text, $error);
    eval {
        my ($params, $uploads) = $parser->parse($env);
        if ($env->{CONTENT_TYPE} =~ /json/) {
            my %member = @$params;
            $params = [map { ($_ => $member{$_}) } sort keys %member];
        }
        $text = as_text($params, $uploads);
        1;
    } or $error = $@;
    return ($text, $error);
}

my (%refused, $taken, @differences);

sub compare {
    my ($type, $body) = @_;
    my ($expected, $their_error) = result_of($theirs, env($type, $body));
    my $env = env($type, $body);
    my ($got, $error) = result_of($ours, $env);
    if (defined $error) {
        return push @differences, "$type: $body: no error of ours: $error"
            if !ref $error || $error->code != 400;
        return if defined $their_error;
        my $reason = $ON_PURPOSE{ $error->message };
        return $refused{ $error->message }++ if $reason && $reason->($body);
        return push @differences, "$type: $body: refused: $error";
    }
    return push @differences, "$type: $body: taken, but refused by them: $their_error"
        if defined $their_error;
    $taken++;
    my $left = do { local $/; readline $env->{'psgi.input'} };
    push @differences, "$type: $body: psgi.input is not at its beginning" if $left ne $body;
    push @differences, "$type: $body: got $got, expected $expected" if $got ne $expected;
}

sub no_differences {
    my $what = shift;
    is scalar @differences, 0, "no difference: $what" or diag explain [splice @differences, 0, 3];
    @differences = ();
}

my $TYPE = 'multipart/form-data; boundary=B';

sub field { "--B\r\nContent-Disposition: form-data; name=\"$_[0]\"\r\n\r\n$_[1]\r\n" }

my @BY_HAND = (
    '', '--B--', "--B--\r\n", "--B--\r\n\r\n", "--B\r\n", "--B\r\n\r\n", "--B\r\n--B--\r\n",
    "--C--\r\n", "B--\r\n",
    field(a => 1) . "--B--\r\n", field(a => '') . "--B--\r\n", field('', '') . "--B--\r\n",
    field(a => 1) . field(a => 2) . "--B--\r\n",
    field(a => 1), field(a => 1) . '--B', field(a => 1) . '--B-', field(a => 1) . '--B--',
    field(a => 1) . "--B--\r", field(a => 1) . "--B--\n",
    field(a => 1) . "--B--\r\nepilogue", field(a => 1) . "--B-- \r\n",
    field(a => 1) . "--Bx--\r\n", field(a => 1) . "--B \r\n",
    "preamble\r\n" . field(a => 1) . "--B--\r\n", "preamble" . field(a => 1) . "--B--\r\n",
    "\r\n" . field(a => 1) . "--B--\r\n",
    'x' x 40_000 . "\r\n", field(a => "1\r\n--") . "--B--\r\n", field(a => "1\r\n-") . "--B--\r\n",
    field(a => "1\r\n\r\n--A") . "--B--\r\n",
    field(a => "1\r") . "--B--\r\n", field(a => "1\n") . "--B--\r\n",
    field(a => "\r\n") . "--B--\r\n", field(a => '--B--') . "--B--\r\n",
    field(a => "x\r\n--Bx") . "--B--\r\n",
    "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n--B--\r\n",
    "--B\r\nContent-Disposition: form-data; name=\"a\"\n\n1\r\n--B--\r\n",
    "--B\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--B--\r\n",
    map { "--B\r\n$_\r\n\r\ncontent\r\n--B--\r\n" } (
        '', 'X: y', 'content-disposition:form-data;name=a',
        'CONTENT-DISPOSITION: Form-Data; Name="a"; FileName="f"', 'Content-Disposition: form-data',
        (
            map { "Content-Disposition: $_" } (
                'form-data; name=a', 'form-data; name="a', 'form-data; name=a"',
                'form-data; name="a";', 'form-data; name="a"; ', 'form-data;name="a"',
                'form-data; name="a\\"b"', 'form-data; name="a\\"',
                'form-data; name="a\\\\"; filename="C:\\dir\\"',
                'form-data; name="a"; filename="x\\"y.txt"',
                'form-data; name="a"; filename=""', 'form-data; name="a"; filename=',
                'form-data; name="a"; filename="f"', 'form-data; filename="f"; name="a"',
                'form-data; filename="f"', 'form-data; name="a"; name="b"',
                'form-data; name="a"; filename="f"; filename="g"', 'form-data; name="a"; foo',
                'form-data; name="a"; foo;', 'form-data; foo; name="a"', 'form-data; ; name="a"',
                'form-data; name="a" filename="f"', 'form-data; name = "a"',
                'form-data; name="a"; filename*=UTF-8\'\'f%20g',
                'form-data; name="a"; filename="f"; filename*=UTF-8\'\'g',
                'form-data; name="%22"; filename="%22.txt"',
                "form-data; name=\"\xe9\"; filename=\"\xe9\xba\x92.png\"",
                'form-data; name="a;b"; filename="c;d"', 'form-data; name=a;filename=f',
                'attachment; name="a"',
                'form-dataname="a"', 'form-data, name="a"', 'form-data; name=""',
                'form-data; name="a"; size=3; filename=f', "form-data;\tname=\"a\"",
                "form-data; name=\"a\x00b\"",
            )
        ),
        "Content-Disposition: form-data;\r\n name=\"a\"",
        "Content-Disposition: form-data;\r\n\tname=\"a\";\r\n  filename=\"f\"",
        " X: y\r\nContent-Disposition: form-data; name=a",
        "Content-Disposition: form-data; name=a\r\n \r\nX: y",
        "Content-Disposition: form-data; name=a\r\nno header",
        "Content-Disposition: form-data; name=a\r\n: x",
        "Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b",
        "X : y\r\nContent-Disposition: form-data; name=a; filename=f",
        "Content-Disposition: form-data; name=a; filename=f\r\nContent-Type: text/plain; charset=x\r\nX:\r\nY:a:b",
        "Content-Disposition: form-data; name=a\nX: y",
        "X:\r\n y\r\nContent-Disposition: form-data; name=a; filename=f",
        "X: y \r\n\t z\r\nContent-Disposition: form-data; name=a; filename=f",
        "X: \x01\r\nContent-Disposition: form-data; name=a; filename=f",
        'X: ' . 'y' x 9_000 . "\r\nContent-Disposition: form-data; name=a; filename=f",
    ),
);

subtest 'multipart by hand' => sub {
    compare($TYPE, $_) for @BY_HAND;
    my $body = field(a => 1) . "--B--\r\n";
    compare("multipart/form-data; $_", $body)
        for 'boundary="B"', 'boundary=B;', 'charset=x; boundary=B', 'boundary=B; charset=x',
        'boundary=', 'boundary=""', '', 'boundary="',
        'boundary=C', "boundary=\xe9", 'boundary=B/', 'boundary="B/"';
    for my $length (1, 69, 70) {
        my $boundary = 'b' x $length;
        compare(
            "multipart/form-data; boundary=$boundary",
            field(a => 1) =~ s/--B/--$boundary/r . "--$boundary--\r\n"
        );
    }
    no_differences('bodies by hand');
};

my @PIECES = (
    ("--B\r\n") x 4, ("\r\n--B\r\n") x 4, "\r\n--B--\r\n", '--B', "--B--\r\n", ("\r\n") x 3,
    ("\r\n\r\n") x 3, "\r", "\n", '-', ' ', 'text', "\0", ': ', ';', '"',
    'Content-Disposition: form-data; name="a"',
    "Content-Disposition: form-data; name=\"b\"; filename=\"f.txt\"\r\nContent-Type: text/plain",
    'X-More: x',
    "Content-Disposition: form-data; name=\"c\"\r\n\r\nvalue",
);

# Complete bodies. Some of them have a piece too many or too few.
sub multipart {
    my $body = '';
    for (1 .. 1 + rand 4) {
        my @lines =
            ('Content-Disposition: form-data; name="' . (qw(a b), '', "\xe9")[rand 4] . '"');
        $lines[0] .= '; filename="' . ('f.txt', '', 'C:\\x\\y', 'a b')[rand 4] . '"'
            if rand() < 0.4;
        push @lines, 'Content-Type: text/plain' if rand() < 0.4;
        push @lines, "X-Folded:" . (' ', ' a', ' a ')[rand 3] . "\r\n b" if rand() < 0.2;
        @lines = reverse @lines if rand() < 0.2;
        my $content = join '', map {
            ("\r\n", '--', "\r\n--", "\r\n--A", 'B', 'text', "\0\xff", '-', "\r", "\n")[rand 10]
        } 1 .. rand 8;
        $body .= "--B\r\n" . join("\r\n", @lines) . "\r\n\r\n$content\r\n";
    }
    $body .= "--B--\r\n";
    for (1 .. (rand() < 0.6 ? 0 : 1 + rand 2)) {
        my $at = rand length $body;
        rand() < 0.5
            ? substr($body, $at, 1 + rand 4, '')
            : substr($body, $at, 0, $PIECES[rand @PIECES]);
    }
    return $body;
}

subtest 'multipart by chance' => sub {
    srand SEED;
    compare($TYPE, rand() < 0.8 ? multipart() : join '', map { $PIECES[rand @PIECES] } 1 .. rand 12)
        for 1 .. BODIES;
    no_differences(BODIES . ' bodies');
    note "$taken taken by both; refused on purpose: ", explain \%refused;
    cmp_ok $taken, '>', BODIES / 3, 'many of them are good';
};

subtest 'multipart in pieces, at every byte' => sub {
    srand SEED;
    my ($splits, @wrong) = (0);
    for my $body ((grep { length $_ < 1_000 } @BY_HAND), map { multipart() } 1 .. 20) {
        my ($expected, $expected_error) = result_of($ours, env($TYPE, $body));
        for my $at (0 .. length $body) {
            # In the last round the input comes a byte at a time.
            my @parts = $at < length $body ? (substr($body, 0, $at), substr $body, $at) : split //,
                $body;
            my $parser = Kirin::RequestBody::MultiPart->new({ CONTENT_TYPE => $TYPE });
            my $got;
            eval { $parser->add($_) for @parts; $got = as_text($parser->finalize); 1 }
                or $got = "$@";
            push @wrong, "at $at: $body: $got" if $got ne ($expected // "$expected_error");
            $splits++;
        }
    }
    is_deeply \@wrong, [], "$splits splits";
};

subtest 'forms' => sub {
    srand SEED;
    my $type = 'application/x-www-form-urlencoded';
    my @pieces = (
        qw(a b = = & & ; + % %4 %zz %41 %e9 %BA %00 %2B %26 %25 "), '& ', '; ', ' ', "\r\n", "\0",
        "\xe9"
    );
    for (1 .. BODIES) {
        my $body = join '', map { $pieces[rand @pieces] } 1 .. rand 20;
        compare($type, $body);
        my ($got, $expected) = (
            Kirin::RequestBody::Form::decode_in_perl($body),
            WWW::Form::UrlEncoded::PP::parse_urlencoded_arrayref($body)
        );
        push @differences, "in Perl: $body"
            if "@{[map { length . $_ } @$got]}" ne "@{[map { length . $_ } @$expected]}";
    }
    no_differences(BODIES . ' bodies');
};

subtest 'JSON' => sub {
    compare('application/json', $_)
        for '{}', '{"a":1}', '{"a":"\u9e92","b":[1,"x",{"c":null}],"d":null,"e":1.5}', '[1,2]',
        '[]', '', ' ', '{', '{"a"}', "{'a':1}",
        '{"a":1} x', "{\"a\":\"\xe9\"}", "{\"\xe9\xba\x92\":\"\xe9\xba\x92\"}", '{"a":"\ud800"}',
        '{"a":{"b":{"c":[[]]}}}', '{"a":tru}', '{"a":1,}', "\xef\xbb\xbf{}";
    compare('application/json; charset=utf-8', '{"a":"b"}');
    compare('application/json', "{\"a\":$_}") for qw(true false);
    compare($_, '{"a":1}') for 'text/plain', '';
    no_differences('JSON');
};

done_testing;
