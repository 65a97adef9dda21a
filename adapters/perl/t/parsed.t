use v5.16;
use warnings;
use lib 't/lib';

BEGIN { @ENV{qw(WWW_FORM_URLENCODED_PP COOKIE_BAKER_PP)} = (1, 1) }

use FakeFront;
use Test::More;

my $US = "\x1f";

# Returns the values that Plack::Request has found.
my $APP = 'use Plack::Request;
    sub {
        my $request = Plack::Request->new(shift);
        my $cookies = $request->cookies;
        return [200, [], [join " ", $request->parameters->flatten, map { ($_, $cookies->{$_}) } sort keys %$cookies]];
    }';

subtest 'what a worker asks for' => sub {
    like +FakeFront->start($APP)->connect, qr/ parsed=cookies,form,query\z/,
        'an application with Plack::Request: everything';
    unlike +FakeFront->start('sub { [200, [], []] }')->connect, qr/parsed/, 'without it: nothing';
    like +FakeFront->start('use Kirin::RequestBody; sub { [200, [], []] }')->connect,
        qr/ parsed=form,query\z/, 'one with Kirin::RequestBody';
    local $ENV{KIRIN_PARSED} = 0;
    unlike +FakeFront->start($APP)->connect, qr/parsed/, 'when it is turned off: nothing';
};

subtest 'what the front has parsed' => sub {
    my $front = FakeFront->start($APP);
    my @query = (QUERY_STRING => 'q=1', 'kirin.query' => "q=1${US}q${US}from the front");
    my @cookies = (HTTP_COOKIE => 'c=1', 'kirin.cookies' => "c=1${US}c${US}from the front");
    my @form = (
        REQUEST_METHOD => 'POST', CONTENT_TYPE => 'application/x-www-form-urlencoded',
        body           => 'f=1', 'kirin.form'  => "3${US}f${US}from the front"
    );
    my $answer = sub { $front->request(@_)->{body} };
    is $answer->(@query, @cookies, @form), 'q from the front f from the front c from the front',
        'is found';
    is $answer->(@query, @cookies, @form, body => 'f=10'),
        'q from the front f 10 c from the front', 'a body of another length';
    is $answer->(@query, @cookies, @form, CONTENT_TYPE => 'text/plain'),
        'q from the front c from the front', 'another type';
    is $answer->(@query, @cookies, QUERY_STRING => 'q=2', HTTP_COOKIE => 'c=2'), 'q 2 c 2',
        'others';
    is $answer->(QUERY_STRING => 'q=1', HTTP_COOKIE => 'c=1'), 'q 1 c 1',
        'a front that has parsed nothing';
};

subtest 'Kirin::RequestBody' => sub {
    my $front = FakeFront->start(
        'use Kirin::RequestBody;
        my $parser = Kirin::RequestBody->new;
        sub { my $env = shift; [200, [], [join " ", @{ Kirin::RequestBody::query($env) }, map { @$_ } $parser->parse($env)]] }'
    );
    my @form = (
        REQUEST_METHOD => 'POST', CONTENT_TYPE => 'application/x-www-form-urlencoded',
        body           => 'f=1'
    );
    is $front->request(@form, QUERY_STRING => 'q=1')->{body}, 'q 1 f 1', 'parses';
    is $front->request(
        @form, QUERY_STRING => 'q=1', 'kirin.form' => "3${US}f${US}from the front",
        'kirin.query'       => "q=1${US}q${US}from the front",
    )->{body}, 'q from the front f from the front', 'takes over what the front has parsed';
};

done_testing;
