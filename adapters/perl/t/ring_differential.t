use v5.16;
use warnings;
use lib 't/lib';
use Kirin::Log;
use Kirin::Worker::Response;
use RingSlot;
use Scalar::Util qw(dualvar);
use Test::More;

# Compares the compiled part with the Perl code, which is the reference: environments with those of
# Kirin::Worker, and responses with Kirin::Worker::Response. The compiled part may leave any
# response to the Perl code. But then it must not have touched it.

my $seed = $ENV{KIRIN_SEED} // 1;
srand $seed;

use constant RESPONSES => 20_000;

# The bytes of an answer in the slot.
use constant ROOM => 8 * 1024;
my $slot = RingSlot->start(answer => ROOM) or plan skip_all => 'there is no ring here';
my $ring = $slot->{ring};

# The log has a line for each name that is no name of a field.
no warnings 'redefine';
local *Kirin::Log::line = sub { };

sub one_of { $_[rand @_] }

sub request {
    my ($body, @pairs) = @_;
    my $block = join '', map { "$_\0" } CONTENT_LENGTH => length $body, SCGI => 1, @pairs;
    return length($block) . ":$block,$body";
}

# Puts a request into the slot and takes it. Returns its environment.
sub take {
    $slot->put($_[0] // request(''));
    my $env = $ring->take;
    $ring->begin;
    return $env;
}

# ------------------------------------------------------------------------ environments

package Kept {
    sub DESTROY { ${ $_[0][0] }++ }
}

my @always = (
    'psgi.version'    => [1, 1],
    'psgi.url_scheme' => 'http',
    'psgi.errors'     => \*STDERR,
    'psgi.run_once'   => !!0,
    'psgi.streaming'  => !!1,
    'psgix.code'      => sub { },
    SERVER_SOFTWARE   => 'Kirin',
);
$ring->set_always(\@always);

# Returns what Kirin::Worker makes of a request.
sub environment {
    my $request = shift;
    my $colon = index $request, ':';
    my %env = (
        @always, 'psgix.cleanup.handlers' => [], split /\0/,
        substr($request, $colon + 1, substr($request, 0, $colon) - 1), -1
    );
    $env{'psgi.url_scheme'} = 'https' if exists $env{HTTPS};
    return \%env;
}

sub random_pairs {
    my @names = (
        qw(REQUEST_METHOD PATH_INFO HTTPS KIRIN_SITE HTTP_COOKIE CONTENT_TYPE kirin.query), 'A',
        'HTTP_' . 'LONG_' x rand 60, "HTTP_X$_[0]", "HTTP_\xe9", '0', ' ', 'a=b', '',
    );
    my @values = ('', '0', 'a', 'x' x rand 500, "\xff\xfe", "a\nb", '%41', ' ', '1e3');
    return map { one_of(@names), one_of(@values) } 1 .. rand 40;
}

subtest 'environments' => sub {
    my $differ = 0;
    for my $number (1 .. 2000) {
        my $body = 'b' x rand 20;
        my $request = request($body, random_pairs($number));
        my $env = take($request);
        is $ring->body, $body, "body of $number" if $ring->body ne $body;
        $ring->answer([200, [], []], 0) or die;
        $slot->report;
        my $wanted = environment($request);
        next if join("\0", sort keys %$env) eq join("\0", sort keys %$wanted) && !grep {
            my ($have, $want) = ($env->{$_}, $wanted->{$_});
            ref $want eq 'ARRAY' && !@$want
                ? ref $have ne 'ARRAY' || @$have
                : $have ne $want
                || utf8::is_utf8($have)
        } keys %$wanted;
        is_deeply $env, $wanted, "request $number (seed $seed): $request" or last if !$differ++;
    }
    is $differ, 0, 'are the same';
};

subtest 'each request has values of its own' => sub {
    my $env = take(request('', A => 'one'));
    my $handlers = $env->{'psgix.cleanup.handlers'};
    push @$handlers, sub { };
    $_ .= ' changed' for grep { !ref } values %$env;
    $env->{'psgi.streaming'} = 'no';
    delete $env->{SERVER_SOFTWARE};
    my $gone = 0;
    $env->{object} = bless [\$gone], 'Kept';
    undef $env;
    is $gone, 1, 'objects in the environment end with it';
    $ring->answer([200, [], []], 0);
    $slot->report;
    $env = take(request('', A => 'two'));
    is_deeply $env, environment(request('', A => 'two')), 'the next environment';
    $ring->answer([200, [], []], 0);
    $slot->report;
};

subtest 'what is no request' => sub {
    for my $bytes (':', 'x', '5', '5:', '0:,', '-1:a,', "9:A\0b\0,", '99999999:', "1234567890:A\0")
    {
        $slot->put($bytes);
        my $env = eval { $ring->take };
        # "0:," has no names, as the Perl code reads it, too.
        ok !defined $env || !exists $env->{A}, "'$bytes'";
        $ring->answer_bytes('x', 0);
        $slot->report;
    }
};

# ------------------------------------------------------------------------ responses

package Text {
    use overload '""' => sub { ${ $_[0][0] }++; $_[0][1] }, fallback => 1;
}

package Scalar {
    sub TIESCALAR { my $class = shift; bless [@_], $class }
    sub FETCH { ${ $_[0][0] }++; $_[0][1] }
    sub STORE { }
}

package List {
    sub TIEARRAY { my $class = shift; bless [@_], $class }
    sub FETCHSIZE { ${ $_[0][0] }++; @{ $_[0][1] } }
    sub FETCH { ${ $_[0][0] }++; $_[0][1][$_[1]] }
}

package main;

# How often code of a value was called.
my $calls = 0;

sub upgraded { my $text = shift; utf8::upgrade($text); return $text }
sub object { return bless [\$calls, $_[0]], 'Text' }
sub list { tie my @list, 'List', \$calls, $_[0]; return \@list }

# Returns its arguments themselves in an array, and not copies of them.
sub aliases { return \@_ }

# Returns an array in which an element is as unusual as it can be.
sub with_odd_element {
    my ($array, $text) = @_;
    my $index = int rand(@$array + 1);
    my @rest = @$array[$index .. $#$array];
    my @first = @$array[0 .. $index - 1];
    my $kind = int rand 8;
    if ($kind == 0) {
        tie my $scalar, 'Scalar', \$calls, $text;
        return aliases(@first, $scalar, @rest);
    }
    return aliases(@first, substr("xx$text", 2), @rest) if $kind == 1;
    return aliases(@first, $1, @rest) if $kind == 2 && $text =~ /\A(.*)\z/s;
    return aliases(@first, my $hash->{missing}, @rest) if $kind == 3;
    if ($kind == 4) {
        local $! = 2;
        return aliases(@first, $!, @rest);
    }
    if ($kind == 5) {
        my @holes = @first;
        $#holes = $index;
        return [@holes, @rest] if @rest;
        return \@holes;
    }
    return aliases(@first, v50.48.48, @rest) if $kind == 6;
    return aliases(@first, "$text", @rest);
}

my @texts = (
    '', 'a', 'hello', '0', 'text/html; charset=utf-8', "tab\tthere", "line\n", "a\r\nb: c", "nul\0",
    "\x01", "\x7f", "\x80", "\xff", "caf\xe9", 'x' x 300, ' ', 'chunked', 'Chunked', '12', '-1',
);
my @odd = (
    sub { undef }, sub { upgraded('ascii') }, sub { upgraded("caf\xe9") }, sub { "\x{263a}" },
    sub { object('object') }, sub { object("\x{263a}") }, sub { [] }, sub { {} },
    sub { \'reference' },
    sub { *STDOUT },
    sub { \*STDOUT },
    sub {
        sub { }
    },
    sub { qr/a/ },
    sub { ${qr/a/} },
    sub { 0 },
    sub { 42 }, sub { -7 }, sub { 1.5 }, sub { 1e100 }, sub { -0.0 }, sub { 9**9**9 },
    sub { -sin 9**9**9 },
    sub { 18446744073709551615 },
    sub { !!0 },
    sub { !!1 },
    sub { dualvar 5, 'text' },
    sub { dualvar 5, "\x{263a}" },
    sub { v1.22.333 },
    sub { my $n = '12'; my $sum = $n + 0; $n },
    sub { my $n = 12; my $text = "$n"; $n },
);
my @names = (
    qw(Content-Type X-A Set-Cookie content-length CONTENT-LENGTH Content-Length Transfer-Encoding
        transfer-encoding Connection Keep-Alive Kirin-Cleanup KIRIN-FILE Kirin-Store Kirin-File Date),
    'x',
    '!#$%&\'*+.^_`|~-0Zz', '', 'a b', "a\n", "a\0", "X-\xe9", "\x{212a}irin-File", 'a:',
    'Content_Length',
);
my @statuses = (
    (200) x 10, '200', 404, 500, 999, 201, 206, 199, 100, 101, 204, 304, '204', '0200', 20, 2000,
    "200\n", ' 200',
    '2xx', '', '200 OK', 2e2, 200.0, 200.5, -200, "\x{662}00",
);

sub text { rand() < 0.9 ? one_of(@texts) : one_of(@odd)->() }

sub array {
    my ($array, $text) = @_;
    my $chance = rand;
    return with_odd_element($array, $text) if $chance < 0.05;
    return list($array) if $chance < 0.06;
    return bless [@$array], 'Some' if $chance < 0.07;
    return one_of(@odd)->() if $chance < 0.08;
    return $array;
}

sub random_response {
    my $status = rand() < 0.95 ? one_of(@statuses) : one_of(@odd)->();
    my @headers =
        map { (rand() < 0.95 ? one_of(@names[0 .. 2, 0 .. $#names]) : text()), text() } 1 .. rand 6;
    pop @headers if rand() < 0.02;
    my @body = map { rand() < 0.9 ? one_of(@texts, 'x' x rand 4000) : text() } 1 .. rand 4;
    my @response = ($status, array(\@headers, 'X-Odd'), array(\@body, 'odd'));
    pop @response if rand() < 0.01;
    push @response, 'more' if rand() < 0.01;
    return array(\@response, 200);
}

# The same numbers make the same response again, so that no value has been looked at before.
sub response_of {
    my $number = shift;
    srand $seed * 1_000_000 + $number;
    return random_response();
}

my ($made, $left) = (0, 0);

sub shown {
    use Data::Dumper;
    local ($Data::Dumper::Useqq, $Data::Dumper::Indent) = (1, 0);
    Dumper(@_);
}

# Compares one response. $again makes it, each time from the start.
sub check {
    my ($name, $again, $leaving) = @_;
    my $env = { REQUEST_METHOD => 'GET' };
    my $reference = $again->();
    my $wanted = eval {
        no warnings;
        ref $reference eq 'ARRAY' && ref $reference->[2] eq 'ARRAY'
            ? Kirin::Worker::Response::whole($reference, $env, $leaving)
            : undef;
    };
    take();
    my $response = $again->();
    ($calls, my $warnings) = (0, 0);
    local $SIG{__WARN__} = sub { $warnings++ };
    my $is_made = $ring->answer($response, $leaving);
    my $trouble = $warnings ? 'a warning' : $calls ? 'code of a value was called' : '';
    if (!$is_made) {
        $left++;
        $trouble ||= 'the request has gone' if !$ring->has_request;
        $trouble ||= 'answer_bytes fails' if !$ring->answer_bytes(my $bytes = 'plain', 0);
        my ($phase, $answer) = $slot->report;
        $trouble ||= 'another answer' if $phase != 2 || $answer ne 'plain';
    }
    else {
        $made++;
        my ($phase, $answer) = $slot->report;
        $trouble ||= "phase $phase" if $phase != 2;
        $trouble ||= 'a response that cannot be sent' if !defined $wanted;
        $trouble ||= shown($answer, $wanted) if $answer ne $wanted;
    }
    return !$trouble || !fail "$name (seed $seed): $trouble: " . shown($again->());
}

subtest 'random responses' => sub {
    for my $number (1 .. RESPONSES) {
        check("response $number", sub { response_of($number) }, $number % 7 == 0) or last;
    }
    cmp_ok $made, '>', 1000, "made by the compiled part: $made";
    cmp_ok $left, '>', 1000, "left to Perl: $left";
};

subtest 'each byte' => sub {
    ($made, $left) = (0, 0);
    for my $byte (0 .. 255) {
        my $text = chr $byte;
        check("name $byte", sub { [200, ["X$text" => 'a'], ['b']] });
        check("only name $byte", sub { [200, [$text => 'a'], ['b']] });
        check("value $byte", sub { [200, [X => "a${text}b"], ['b']] });
        check("last of a value $byte", sub { [200, [X => $text], ['b']] });
        check("body $byte", sub { [200, [], [$text, $text]] });
        check("status $byte", sub { ["20$text", [], ['b']] });
        check("status of $byte", sub { [$text, [], ['b']] });
        check("framing $byte", sub { [200, ["Connectio$text" => 'close'], ['b']] });
    }
    cmp_ok $made, '>', 900, "made by the compiled part: $made";
};

subtest 'each status' => sub {
    check("status $_", sub { [$_, ['Content-Length' => 3], ['abc']] }) for 0 .. 1100;
    pass;
};

subtest 'what plain responses must be made by the compiled part' => sub {
    my %plain = (
        hello    => sub { [200, ['Content-Type' => 'text/plain'], ["hello\n"]] },
        number   => sub { ['200', ['Content-Length' => 6, 'X-A' => 1.5], [1, undef, 'a', '']] },
        empty    => sub { [404, [], []] },
        constant => sub { state $response = [200, ['Content-Type', 'text/html'], ['x']] },
        bytes    => sub { [200, [], [join '', map chr, 0 .. 255]] },
        extra    => sub { [200, [], ['a'], 'more'] },
    );
    for my $name (sort keys %plain) {
        ($made, $left) = (0, 0);
        check($name, $plain{$name}, 0);
        check("$name, leaving", $plain{$name}, 1);
        is $made, 2, $name;
    }
};

subtest 'as much as there is room for' => sub {
    ($made, $left) = (0, 0);
    check("body of $_", sub { [200, [], ['x' x $_]] }) for ROOM - 200 .. ROOM + 100;
    check("bodies of $_", sub { [200, [], [('x' x ($_ / 8)) x 8]] }) for ROOM - 200 .. ROOM + 100;
    check("name of $_", sub { [200, ['x' x $_ => 'a'], ['b']] }) for ROOM - 200 .. ROOM + 100;
    check("value of $_", sub { [200, [a => 'x' x $_], ['b']] }) for ROOM - 200 .. ROOM + 100;
    ok $made && $left, 'some have room and others have not';
    for my $length (ROOM - 1 .. ROOM + 1) {
        take();
        my $is_sent = $ring->answer_bytes(my $bytes = 'x' x $length, 0);
        is $is_sent, $length <= ROOM, "answer_bytes of $length bytes";
        $ring->answer_bytes('x', 0) if !$is_sent;
        $slot->report;
    }
};

subtest 'memory' => sub {
    my $pages =
        sub { open my $file, '<', '/proc/self/statm' or return 0; (split ' ', readline $file)[1] };
    my @responses = (
        sub { [200, ['Content-Type' => 'text/plain', 'X-A' => 1], ['hello', 2]] },
        sub { [200, ["bad\nname" => 1], ['hello']] },
    );
    my $round = sub {
        for my $number (1 .. 20_000) {
            take(request('body', A => $number, "HTTP_X_$number" => $number));
            $ring->body;
            $ring->answer($responses[$number % 2]->(), 0) || $ring->answer_bytes('x', 0);
            $slot->report;
        }
    };
    $round->();
    my $before = $pages->();
    $round->();
    # A lost value in each request would be at least 400 pages.
    cmp_ok $pages->() - $before, '<', 100, 'pages more after many requests';
};

done_testing;
