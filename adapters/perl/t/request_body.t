use v5.16;
use warnings;
use lib 't/lib';

use Kirin::RequestBody;
use Plack::Request;
use Test::More;

my $FORM = 'application/x-www-form-urlencoded';
my $PARTS = 'multipart/form-data; boundary=B';

# An input like a socket: it can be read once, a few bytes at a time, without seek.
package OneWay {
    sub new { my ($class, $bytes) = @_; bless { bytes => $bytes }, $class }

    sub read {
        my $self = shift;
        $_[0] = substr $self->{bytes}, 0, $_[1] < 7 ? $_[1] : 7, '';
        return length $_[0];
    }
}

sub env {
    my ($type, $body, %more) = @_;
    open my $input, '<', \$body or die $!;
    return {
        CONTENT_TYPE => $type, CONTENT_LENGTH          => length $body, QUERY_STRING => '',
        'psgi.input' => $input, 'psgix.input.buffered' => 1,
        %more,
    };
}

sub field { "--B\r\nContent-Disposition: form-data; name=\"$_[0]\"\r\n\r\n$_[1]\r\n" }

sub upload {
    "--B\r\nContent-Disposition: form-data; name=\"$_[0]\"; filename=\"$_[1]\"\r\nContent-Type: text/plain\r\n\r\n$_[2]\r\n";
}

my $parser = Kirin::RequestBody->new;

sub content { local (@ARGV, $/) = shift; scalar readline }

# Returns the code and the message of a request's error.
sub refusal {
    my ($parser, $env) = @_;
    my @result = eval { $parser->parse($env) };
    my $error = $@;
    return 'taken' if @result;
    return ref $error ? $error->code . ' ' . $error->message : $error;
}

subtest 'what is there' => sub {
    is_deeply [$parser->parse({})], [[], []], 'nothing';
    is_deeply [$parser->parse(env(undef, ''))], [[], []], 'no body';
    for my $length (undef, '', 0) {
        my $env = env(
            $FORM, '', CONTENT_LENGTH => $length, 'psgi.input' => OneWay->new('unread'),
            'psgix.input.buffered'    => 0
        );
        is_deeply [$parser->parse($env)], [[], []], 'no body of that type: ' . ($length // 'undef');
    }
    is_deeply [$parser->parse(env('text/plain', 'a=1'))], [[], []], 'something else';
    my $env = env("$FORM; charset=UTF-8", 'a=1&b=%21&a');
    read $env->{'psgi.input'}, my $some, 5;
    is_deeply [$parser->parse($env)], [[a => 1, b => '!', a => ''], []], 'a form';
    is content_of($env), 'a=1&b=%21&a', 'psgi.input can be read again';
    is_deeply [$parser->parse(env('Application/JSON', '{"a":{"b":[true,"\u9e92"]}}'))],
        [[a => { b => [1, "\xe9\xba\x92"] }], []], 'JSON';
};

sub content_of { my $env = shift; local $/; readline $env->{'psgi.input'} }

subtest 'uploads' => sub {
    my $body =
          field(a => 1)
        . upload('f', 'x.txt', 'content')
        . upload('f', 'y.txt', 'y' x 1_000_000)
        . upload('g', '', '')
        . field(a => 2)
        . "--B--\r\n";
    my $env = env($PARTS, $body);
    my ($params, $uploads) = $parser->parse($env);
    is_deeply $params, [a => 1, a => 2], 'fields';
    is_deeply [map { ref $_ ? [@$_{qw(name filename size)}] : $_ } @$uploads],
        ['f', ['f', 'x.txt', 7], 'f', ['f', 'y.txt', 1_000_000]], 'files';
    is_deeply $uploads->[1]{headers},
        [
        'Content-Disposition', 'form-data; name="f"; filename="x.txt"', 'Content-Type',
        'text/plain'
        ],
        'headers';
    my @files = map { $_->{tempname} } @$uploads[1, 3];
    is content($files[0]), 'content', 'the content of the first';
    ok content($files[1]) eq 'y' x 1_000_000, 'and of the second';
    is + (stat $files[0])[2] & 0777, 0600, 'a file for nobody else';
    undef $env;
    ok !-e $files[0] && !-e $files[1], 'they go with the environment';
    is content_of(
        do { $env = env($PARTS, $body); $parser->parse($env); $env }
        ),
        $body, 'psgi.input can be read again';
};

subtest 'fill' => sub {
    my $env = env(
        $PARTS, field(a => 1) . upload('f', 'x.txt', 'content') . "--B--\r\n",
        QUERY_STRING => 'q=%41'
    );
    my $request = Plack::Request->new($parser->fill($env));
    no warnings 'redefine';
    local *Plack::Request::_parse_request_body = sub { die 'Plack parses' };
    is_deeply [$request->parameters->flatten], [q => 'A', a => 1], 'parameters';
    my $upload = $request->upload('f');
    is $upload->content_type, 'text/plain', 'an upload has headers';
    is content($upload->path), 'content', 'and a file';
};

subtest 'an input that can be read once' => sub {
    for my $case (
        [$FORM, 'a=1&b=2', [a => 1, b => 2]],
        [$PARTS, field(a => 1) . "--B--\r\n", [a => 1]], ['text/plain', 'something', []]
        )
    {
        my ($type, $body, $expected) = @$case;
        my $env =
            env($type, $body, 'psgi.input' => OneWay->new($body), 'psgix.input.buffered' => 0);
        is_deeply [$parser->parse($env)], [$expected, []], $type;
        ok $env->{'psgix.input.buffered'}, 'it is buffered now';
        is content_of($env), $body, 'and can be read again';

        my $chunked = join '', map { sprintf "%x;x=y\r\n%s\r\n", length, $_ } $body =~ /.{1,5}/gs;
        $env = env(
            $type, '', 'psgi.input' => OneWay->new("${chunked}0\r\nTrailer: x\r\n\r\n"),
            'psgix.input.buffered'  => 0, HTTP_TRANSFER_ENCODING => 'Chunked'
        );
        delete $env->{CONTENT_LENGTH};
        is_deeply [$parser->parse($env)], [$expected, []], "$type in chunks";
        is content_of($env), $body, 'without them it can be read again';
        is $env->{CONTENT_LENGTH}, length $body, 'its length is known now';
        ok !exists $env->{HTTP_TRANSFER_ENCODING}, 'it is in chunks no more';
    }
};

subtest 'malformed' => sub {
    is refusal($parser, env($FORM, 'a=1', CONTENT_LENGTH => $_)),
        '400 Content-Length is no number', "Content-Length: $_"
        for '-1', '3x', 'abc', '1e3', '9' x 20;
    for my $type ($FORM, $PARTS, 'application/json') {
        like refusal($parser, env($type, '{}', CONTENT_LENGTH => 10)),
            qr/\A400 the body ends 8 bytes too early/, "$type that is cut";
    }
    for my $chunks (
        '', '5', "5\r\n", "5\r\nabc", "5\r\nabcdefg\r\n0\r\n\r\n", "x\r\n", "-1\r\n",
        "0\r\n", "fffffffff\r\n", 'a' x 5_000, "1\na\r\n0\r\n\r\n", " 1\r\na\r\n0\r\n\r\n"
        )
    {
        my $env = env(
            $FORM, '', CONTENT_LENGTH => undef, 'psgi.input'       => OneWay->new($chunks),
            'psgix.input.buffered'    => 0, HTTP_TRANSFER_ENCODING => 'chunked'
        );
        like refusal($parser, $env), qr/\A400 .*chunk/,
            'chunks: ' . substr($chunks, 0, 20) =~ s/[\r\n]+/ /gr;
    }
    like refusal($parser, env('application/json', $_)), qr/\A400 not JSON: /, "JSON: $_"
        for '', '{', '[' x 200 . ']' x 200, '{"a":1}}';
    for my $type (
        'multipart/form-data', 'multipart/form-data; xboundary=B',
        'multipart/form-data; boundary=' . 'b' x 71, 'multipart/form-data; boundary="a b"'
        )
    {
        like refusal($parser, env($type, field(a => 1) . "--B--\r\n")),
            qr/\A400 (?:no|bad) boundary/, $type;
    }
    my $error = do {
        eval { $parser->parse(env('application/json', '{')) };
        $@;
    };
    is $error->as_psgi->[0], 400, 'a response can be made of an error';
};

subtest 'limits' => sub {
    my $part = field(a => '12345');
    for my $case (
        [max_body_bytes => 20, $FORM, 'a=' . 'x' x 18, 'a=' . 'x' x 19],
        [max_form_bytes => 20, $FORM, 'a=' . 'x' x 18, 'a=' . 'x' x 19],
        [max_json_bytes => 10, 'application/json', '{"a":"bc"}', '{"a":"bcd"}'],
        [max_parts      => 3, $PARTS, $part x 3 . "--B--\r\n", $part x 4 . "--B--\r\n"],
        [
            max_fields_bytes => 10, $PARTS, $part x 2 . upload('f', 'f', 'x' x 100) . "--B--\r\n",
            $part x 2 . field(a => 1) . "--B--\r\n"
        ],
        [max_part_head_bytes => 40, $PARTS, "${part}--B--\r\n", field(ab => 1) . "--B--\r\n"],
        )
    {
        my ($name, $limit, $type, $good, $bad) = @$case;
        for my $buffered (1, 0) {
            my $limited = Kirin::RequestBody->new($name => $limit, buffer_length => 16);
            my @more = $buffered ? () : ('psgix.input.buffered' => 0);
            is refusal(
                $limited,
                env($type, $good, $buffered ? () : ('psgi.input' => OneWay->new($good)), @more)
                ),
                'taken', "$name: as much as that";
            like refusal(
                $limited,
                env($type, $bad, $buffered ? () : ('psgi.input' => OneWay->new($bad)), @more)
                ),
                qr/\A413 /, "$name: no more";
        }
    }
    my $chunked = sub {
        env(
            $FORM, '', CONTENT_LENGTH => undef,
            'psgi.input'              => OneWay->new("5\r\na=123\r\n5\r\n12345\r\n0\r\n\r\n"),
            'psgix.input.buffered'    => 0, HTTP_TRANSFER_ENCODING => 'chunked'
        );
    };
    is refusal(Kirin::RequestBody->new(max_body_bytes => 10), $chunked->()), 'taken',
        'chunks up to the limit';
    like refusal(Kirin::RequestBody->new(max_body_bytes => 9), $chunked->()), qr/\A413 /,
        'chunks over it';
    ok !eval { Kirin::RequestBody->new(max_fun => 1) }, 'an unknown limit is a mistake';
};

subtest 'register' => sub {
    my $some = Kirin::RequestBody->new;
    $some->register('application/x-www-form-urlencoded', 'HTTP::Entity::Parser::UrlEncoded');
    $some->register('text/csv', 'Csv', { separator => ';' });
    is_deeply [$some->parse(env($FORM, 'a=1'))], [[a => 1], []],
        'a parser of ours under its old name';
    is_deeply [$some->parse(env('application/json', '{"a":1}'))], [[], []],
        'what is not registered is not parsed';
    is_deeply [$some->parse(env('text/csv', 'a;b'))], [['a', 'b'], []],
        'a parser of the application';
    is_deeply [$parser->parse(env('application/json', '{"a":1}'))], [[a => 1], []],
        'others know nothing of it';
};

package Csv {
    sub new { my ($class, $env, $option) = @_; bless { %$option, text => '' }, $class }
    sub add { $_[0]{text} .= $_[1] }
    sub finalize { my $self = shift; ([split /$self->{separator}/, $self->{text}], []) }
}

done_testing;
