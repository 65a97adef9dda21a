use v5.16;
use warnings;
use lib 't/lib';
use NeedsKirin;
use Http10;
use HTTP::Request::Common qw(GET);
use Plack::LWPish;
use Plack::Test;
use Plack::Test::Server;
use Plack::Test::Suite;
use Test::More;

# Plack's own tests of servers, with a kirin in front. One of their applications dies on purpose.
$ENV{PLACK_SERVER} = 'Kirin';
open my $stderr, '>&', \*STDERR or die $!;
open STDERR, '>', '/dev/null' or die $!;

subtest 'HTTP/1.1' => sub {
    Plack::Test::Suite->run_server_tests('Kirin', undef, undef, max_workers => 2);
};

subtest 'HTTP/1.0' => sub {
    no warnings 'redefine';
    local *Plack::LWPish::request = \&Http10::request;
    Plack::Test::Suite->run_server_tests('Kirin', undef, undef, max_workers => 2);

    my $server = Plack::Test::Server->new(sub { [200, [], [$_[0]{SERVER_PROTOCOL}]] });
    is $server->request(GET '/')->content, 'HTTP/1.0', 'which is what the client speaks';
};

subtest 'Plack::Test with Impl=Server' => sub {
    local $Plack::Test::Impl = 'Server';
    test_psgi app => sub {
        [200, ['Content-Type' => 'text/plain'], ["$_[0]{SERVER_SOFTWARE} $_[0]{SERVER_PROTOCOL}"]]
        },
        client => sub {
        my $response = $_[0]->(GET 'http://localhost/');
        is $response->code, 200, 'status';
        is $response->content, 'Kirin HTTP/1.1', 'answered by Kirin';
        };
};

open STDERR, '>&', $stderr or die $!;
done_testing;
