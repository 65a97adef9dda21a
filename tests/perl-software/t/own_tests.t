use v5.16;
use warnings;
use lib 'lib';

use Cwd qw(getcwd);
use File::Temp ();
use HTTP::Tiny;
use Served;
use Test::More;

# Applications that the frameworks' own generators write, and one from a package, pass their own
# tests against Kirin.

my $LIB = getcwd() . '/lib';
my $ADAPTER = getcwd() . '/../../adapters/perl/lib';
my $LOGIN = '/usr/share/doc/libmojolicious-perl/examples/login';

# Runs a command. Shows its output if it fails.
sub run {
    my ($what, $directory, $env, @command) = @_;
    my $pid = open my $output, '-|' // die "fork: $!";
    if (!$pid) {
        delete @ENV{qw(PLACK_ENV MOJO_MODE DANCER_ENVIRONMENT)};
        @ENV{ keys %$env } = values %$env;
        chdir $directory or die "$directory: $!";
        open STDERR, '>&', \*STDOUT or die $!;
        exec @command or die "$command[0]: $!";
    }
    my $text = do { local $/; readline $output };
    close $output;
    is $?, 0, $what or diag $text;
    return $text;
}

# Runs the tests in t, and checks that they were not skipped.
sub prove {
    my ($what, $directory, $env, @options) = @_;
    my $text = run($what, $directory, $env, 'prove', '-v', '-I', 'lib', @options);
    like $text, qr/^Result: PASS$/m, 'they have run' or diag $text;
    unlike $text, qr/skipped/, 'none was skipped';
}

subtest 'dancer2 gen' => sub {
    my $place = File::Temp->newdir;
    run('generated', $place, {}, qw(dancer2 gen -a Skeleton -d skeleton));
    my %env =
        (PLACK_TEST_IMPL => 'Server', PLACK_SERVER => 'Kirin', KIRIN_BINARY => Served::binary());
    prove('its own tests', "$place/skeleton", \%env, '-I', $ADAPTER, 't');

    my $kirin = Served->by_kirin("$place/skeleton", 'bin/app.psgi');
    my $client = HTTP::Tiny->new;
    like $client->get($kirin->url . '/')->{content}, qr{<title>Skeleton</title>},
        'its page by kirin serve';
    like $client->get($kirin->url . '/css/style.css')->{content}, qr/body\s*\{/,
        'and its style sheet';
};

subtest 'catalyst.pl' => sub {
    my $place = File::Temp->newdir;
    run('generated', $place, {}, qw(catalyst.pl Skeleton));
    my $kirin = Served->by_kirin("$place/Skeleton", 'skeleton.psgi');
    prove('its own tests', "$place/Skeleton", { CATALYST_SERVER => $kirin->url }, 't/01app.t');
};

subtest 'mojo generate app' => sub {
    my $place = File::Temp->newdir;
    run('generated', $place, {}, qw(mojo generate app Skeleton));
    my $kirin = Served->by_kirin("$place/skeleton", 'script/skeleton');
    my %env = (KIRIN_URL => $kirin->url, PERL5OPT => "-I$LIB -MMojoAtKirin");
    prove('its own tests', "$place/skeleton", \%env, 't');
    ok $kirin->has_logged(qr/"GET \S* HTTP[^"]*" 200/), 'Kirin was asked';
};

subtest 'the example "login" of Mojolicious' => sub {
    # Debian can leave out documentation, where the example is.
    plan skip_all => "no $LOGIN" if !-d $LOGIN;
    my $kirin = Served->by_kirin($LOGIN, 'script/login_app');
    my %env = (KIRIN_URL => $kirin->url, PERL5OPT => "-I$LIB -MMojoAtKirin");
    prove('its own tests', $LOGIN, \%env, 't');
    ok $kirin->has_logged(qr/"POST \S* HTTP[^"]*"/), 'Kirin was asked';
};

done_testing;
