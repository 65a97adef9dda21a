use v5.16;
use warnings;
use lib 't/lib';
use FakeFront;
use Test::More;

my $front = FakeFront->start(<<'PSGI', workers => 2);
use Data::Dumper;
use Plack::Builder;
my $app = sub {
    my $env = shift;
    local ($Data::Dumper::Terse, $Data::Dumper::Useqq) = (1, 1);
    my $input = $env->{'psgi.input'};
    my $body = do { local $/; readline $input };
    $env->{'psgi.errors'}->print("a line for the log\n");
    my %plain = map { $_ => $env->{$_} } grep { !ref $env->{$_} || ref $env->{$_} eq 'ARRAY' } keys %$env;
    delete $plain{'psgi.errors'};
    return [200, [], [Dumper({ env => \%plain, body => $body, errors => ref $env->{'psgi.errors'} })]];
};
builder { enable 'Lint'; $app };
PSGI

like $front->connect,
    qr{\AKIRIN/1 pid=[0-9]+ generation=1 adapter=perl/[0-9.]+(?: speaks=2 body=descriptor)? stacks=perl:[0-9a-f,]+\z},
    'the greeting says who it is';

sub ask { eval $front->request(@_)->{body} or die $@ }

subtest 'the keys that PSGI wants' => sub {
    my $seen = ask(PATH_INFO => "/caf\xe9", QUERY_STRING => 'a=b', HTTP_X_EMPTY => '');
    my $env = $seen->{env};
    is_deeply $env->{'psgi.version'}, [1, 1], 'psgi.version';
    is $env->{'psgi.url_scheme'}, 'http', 'psgi.url_scheme';
    for my $key (qw(psgi.multiprocess psgi.streaming psgix.input.buffered)) {
        ok $env->{$key}, "$key is true";
    }
    for my $key (qw(psgi.multithread psgi.run_once psgi.nonblocking)) {
        ok exists $env->{$key} && !$env->{$key}, "$key is false";
    }
    is $env->{PATH_INFO}, "/caf\xe9", 'values are bytes as they came';
    is $env->{HTTP_X_EMPTY}, '', 'an empty value is there';
    is $env->{SCRIPT_NAME}, '', 'SCRIPT_NAME is empty';
    is $seen->{body}, undef // '', 'no body';
    unlike join(' ', keys %$env), qr/(?:\A|\s)(?:\s|\z)/, 'no empty name';
    like $front->log, qr/^a line for the log$/m, 'psgi.errors goes to the log';
};

is ask(HTTPS => 'on')->{env}{'psgi.url_scheme'}, 'https', 'an encrypted request';
is ask()->{env}{'psgi.url_scheme'}, 'http', 'the next one, which is not';

subtest 'a request may come a byte at a time' => sub {
    my $request = FakeFront->encode(
        CONTENT_LENGTH => 5, REQUEST_METHOD => 'POST', SCRIPT_NAME => '', PATH_INFO => '/',
        SERVER_NAME    => 'x',
        SERVER_PORT    => 1, REQUEST_URI => '/', QUERY_STRING => '',
    ) . 'bytes';
    for my $byte (split //, $request) {
        $front->write($byte);
    }
    my $seen = eval $front->response->{body};
    is $seen->{body}, 'bytes', 'the body';
    is $seen->{env}{SERVER_NAME}, 'x', 'a value';
};

subtest 'what is no request ends the connection' => sub {
    for my $garbage ("GET / HTTP/1.0\r\n\r\n", '99999999:', ':') {
        $front->connect;
        $front->write($garbage);
        ok $front->response->{cut}, "'" . ($garbage =~ s/\r\n/ /gr) . "'";
    }
    $front->connect;
    ok ask()->{env}, 'and another worker serves';
};

done_testing;
