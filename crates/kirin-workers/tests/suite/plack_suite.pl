use v5.16;
use warnings;
use Plack::LWPish;
use Plack::Test::Suite;
use Test::More;

# Runs the client half of Plack's own server tests against the port in the first argument. There the
# application half (Plack::Test::Suite->test_app_handler) must be served.

my ($port) = @ARGV;
my $agent = Plack::LWPish->new;
for my $index (0 .. $#Plack::Test::Suite::TEST) {
    my ($name, $client) = @{ $Plack::Test::Suite::TEST[$index] };
    subtest $name => sub {
        $client->(
            sub {
                my $request = shift;
                $request->uri->scheme('http');
                $request->uri->host('127.0.0.1');
                $request->uri->port($port);
                $request->header('X-Plack-Test' => $index);
                return $agent->request($request);
            }
        );
    };
}
done_testing;
