package Served;
use v5.16;
use warnings;

use Cwd ();
use File::Basename ();
use File::Temp ();
use IO::Socket::INET;
use POSIX ();
use Time::HiRes ();

# A test that is interrupted then stops its servers.
use sigtrap qw(die normal-signals);

# An application behind a server in its own process. It ends when the object goes out of scope.
#
#     my $kirin   = Served->by_kirin('apps/mojolicious', 'memo.pl');
#     my $starlet = Served->by_starlet('apps/mojolicious', 'memo.pl');
#     my $base    = $kirin->url;

use constant WORKERS => 2;

# Seconds that a server may take to start on a busy machine.
use constant PATIENCE => 60 * ($ENV{KIRIN_TEST_WAIT_FACTOR} || 1);

my $REPOSITORY = Cwd::abs_path(File::Basename::dirname(__FILE__) . '/../../..');
my $ADAPTER = "$REPOSITORY/adapters/perl/lib";
require "$REPOSITORY/adapters/perl/t/lib/LeasedPort.pm";

# Starts `kirin serve` with only the application's file.
sub by_kirin {
    my ($class, $directory, $app, %env) = @_;
    my $port = LeasedPort::lease_port();
    return $class->start(
        $directory, $port, \%env, binary(), 'serve', $app, '--listen', "127.0.0.1:$port",
        '--workers', WORKERS
    );
}

# Starts `plackup -s Kirin`.
sub by_plackup {
    my ($class, $directory, $app, %env) = @_;
    my $port = LeasedPort::lease_port();
    return $class->start(
        $directory, $port, { KIRIN_BINARY => binary(), %env },
        'plackup', '-I', $ADAPTER, '-I', 'lib', '-s', 'Kirin', '-E', 'deployment', '--host',
        '127.0.0.1', '--port', $port,
        '--max-workers', WORKERS, $app
    );
}

# Starts Starlet, the server for the comparison. (Starman frames a response again if its application
# has framed it in chunks, as Mojolicious does.)
sub by_starlet {
    my ($class, $directory, $app, %env) = @_;
    my $port = LeasedPort::lease_port();
    return $class->start(
        $directory, $port, \%env,
        'plackup', '-I', 'lib', '-s', 'Starlet', '-E', 'deployment', '--host', '127.0.0.1',
        '--port', $port,
        '--max-workers', WORKERS, '--max-keepalive-reqs', 1000, '--keepalive-timeout', 60, $app
    );
}

sub start {
    my ($class, $directory, $port, $env, @command) = @_;
    my $self = bless { port => $port, log => File::Temp->new, admin => File::Temp->newdir }, $class;
    $self->{pid} = fork // die "fork: $!";
    if (!$self->{pid}) {
        # The environment must not decide the mode of a framework.
        delete @ENV{qw(PLACK_ENV PLACK_SERVER MOJO_MODE DANCER_ENVIRONMENT KIRIN_LOG)};
        @ENV{ 'PERL5LIB', keys %$env } = ('lib', values %$env);
        # Other Kirins of this machine are not found from here.
        $ENV{KIRIN_ADMIN_DIRECTORY} = "$self->{admin}";
        POSIX::setpgid(0, 0);
        chdir $directory or die "$directory: $!";
        open STDIN, '<', '/dev/null' or die $!;
        open STDOUT, '>>', $self->{log}->filename or die $!;
        open STDERR, '>&', \*STDOUT or die $!;
        exec @command or POSIX::_exit(127);
    }
    $self->wait_until_it_serves;
    return $self;
}

sub url { return "http://127.0.0.1:$_[0]{port}" }

sub log {
    my $self = shift;
    open my $log, '<', $self->{log}->filename or return '';
    local $/;
    return readline($log) // '';
}

# Waits until the log has this text, because an access log is written a little later.
sub has_logged {
    my ($self, $pattern) = @_;
    my $start = Time::HiRes::time();
    while (Time::HiRes::time() - $start < PATIENCE) {
        return 1 if $self->log =~ $pattern;
        Time::HiRes::sleep(0.05);
    }
    return 0;
}

sub wait_until_it_serves {
    my $self = shift;
    my $start = Time::HiRes::time();
    until (IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port})) {
        if (waitpid $self->{pid}, POSIX::WNOHANG()) {
            delete $self->{pid};
            die "the server has ended:\n" . $self->log;
        }
        die "no server has started:\n" . $self->log
            if Time::HiRes::time() - $start > PATIENCE;
        Time::HiRes::sleep(0.05);
    }
}

# Returns the Kirin that `cargo build` made, or the one that KIRIN_BINARY names.
sub binary {
    my $binary = $ENV{KIRIN_BINARY} // "$REPOSITORY/target/debug/kirin";
    die "there is no $binary: cargo build -p kirin\n" if !-x $binary;
    return Cwd::abs_path($binary);
}

sub DESTROY {
    my $self = shift;
    local ($?, $!, $@);
    return if !$self->{pid};
    kill TERM => $self->{pid};
    waitpid $self->{pid}, 0;
}

1;
