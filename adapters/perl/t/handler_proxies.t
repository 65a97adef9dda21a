use v5.16;
use warnings;
use lib 't/lib';
use NeedsKirin;
use HTTP::Request::Common qw(GET);
use Plack::Builder;
use Plack::Loader;
use Plack::LWPish;
use Test::TCP;
use Test::More;

# Kirin trusts a proxy on the same machine, with and without Plack::Middleware::ReverseProxy.
$ENV{PLACK_SERVER} = 'Kirin';

my $app = sub {
    my $env = shift;
    my @told = grep { /FORWARDED/ } sort keys %$env;
    [
        200, ['Content-Type' => 'text/plain'],
        [join ' ', @$env{qw(REMOTE_ADDR psgi.url_scheme)}, @told]
    ];
};
my @proxied = ('X-Forwarded-For' => '6.6.6.6, 192.0.2.7', 'X-Forwarded-Proto' => 'https');

for my $case (
    ['plain', $app, [], '192.0.2.7 https'],
    ['with ReverseProxy', builder { enable 'ReverseProxy'; $app }, [], '192.0.2.7 https'],
    ['trusting others', $app, [trusted => '10.0.0.0/8,unix:'], '127.0.0.1 http'],
    [
        'trusting nobody, with ReverseProxy', builder { enable 'ReverseProxy'; $app },
        [trusted => ''], '127.0.0.1 http'
    ],
    )
{
    my ($name, $application, $options, $expected) = @$case;
    my $server = Test::TCP->new(
        code => sub {
            Plack::Loader->load(
                'Kirin', host => '127.0.0.1', port => $_[0], max_workers => 1,
                @$options
            )->run($application);
            exit;
        },
    );
    my $response = Plack::LWPish->new(no_proxy => ['127.0.0.1'])
        ->request(GET 'http://127.0.0.1:' . $server->port . '/', @proxied);
    is $response->content, $expected, $name;
}

done_testing;
