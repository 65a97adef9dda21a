package Plackup;
use v5.16;
use warnings;

use File::Temp ();
use IO::Socket::UNIX;
use WaitFactor qw(patient);
use Time::HiRes ();

# plackup -s Kirin in its own process, on a unix socket.
#
#     my $server = Plackup->start('sub { [200, [], ["hello"]] }', '--workers', 2);
#     my $body = $server->get('/');
#     my $status = $server->stop('TERM');

our $STARTER;

sub start {
    my ($class, $program, @options) = @_;
    my $self = $class->spawn($program, @options);
    $self->wait_until('it serves', sub { $self->connect || !$self->is_running });
    return $self;
}

# Starts it behind a starter, which gives the socket. %SOCKET% and %DIRECTORY% in its command and
# options stand for paths. Signals go to the starter.
sub start_behind {
    my ($class, $program, $starter, @options) = @_;
    local $STARTER = $starter;
    return $class->start($program, @options);
}

sub spawn {
    my ($class, $program, @options) = @_;
    my $directory = File::Temp->newdir;
    my $self = bless { directory => $directory, socket => "$directory/http.sock" }, $class;
    $self->write_app($program);
    mkdir "$directory/tmp" or die $!;
    $self->{pid} = fork // die $!;
    if (!$self->{pid}) {
        open STDOUT, '>>', "$directory/log" or die $!;
        open STDERR, '>&', \*STDOUT or die $!;
        $ENV{TMPDIR} = "$directory/tmp";
        # Other Kirins of this machine are not found from here.
        $ENV{KIRIN_ADMIN_DIRECTORY} = "$directory";
        my @listen = $STARTER ? () : ('--listen', $self->{socket});
        my @command = (
            @{ $STARTER // [] }, $^X, '-Ilib', '-S', 'plackup', '-s', 'Kirin', '-E', 'deployment',
            @listen, @options,
            "$directory/app.psgi",
        );
        s/%SOCKET%/$self->{socket}/, s/%DIRECTORY%/$directory/ for @command;
        exec @command or die $!;
    }
    return $self;
}

sub write_app {
    my ($self, $program) = @_;
    open my $file, '>', "$self->{directory}/app.psgi" or die $!;
    print {$file} $program;
    close $file or die $!;
}

sub connect {
    my $self = shift;
    return IO::Socket::UNIX->new($self->{socket});
}

# Sends a GET. Returns the connection.
sub send {
    my ($self, $path, $socket) = @_;
    $socket //= $self->connect // die "connect: $!\n" . $self->log;
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    return $socket;
}

# Reads a response to the end of the connection. Returns head and body.
sub receive {
    my ($self, $socket) = @_;
    my $response = do { local $/; readline($socket) // '' };
    # Kirin waits for a client that may still be sending.
    close $socket;
    return split /\r\n\r\n/, $response, 2;
}

sub get {
    my ($self, $path, $socket) = @_;
    my (undef, $body) = $self->receive($self->send($path, $socket));
    return $body // '';
}

sub log {
    my $self = shift;
    return '' if !$self->{directory};
    open my $log, '<', "$self->{directory}/log" or return '';
    local $/;
    return readline($log) // '';
}

# Returns the files that Kirin has left in TMPDIR.
sub left_behind {
    my $self = shift;
    return glob "$self->{directory}/tmp/*";
}

sub is_running {
    my $self = shift;
    return 0 if !$self->{pid};
    return 1 if !waitpid $self->{pid}, 1;
    $self->{status} = $?;
    delete $self->{pid};
    return 0;
}

# Waits for the end. Returns the status as of wait(2).
sub wait {
    my $self = shift;
    $self->wait_until('it ends', sub { !$self->is_running });
    return $self->{status};
}

sub stop {
    my ($self, $signal) = @_;
    kill $signal, $self->{pid};
    return $self->wait;
}

sub wait_until {
    my ($self, $what, $condition) = @_;
    for (1 .. patient(1500)) {
        return 1 if $condition->();
        Time::HiRes::sleep(0.02);
    }
    die "still not there: $what\n" . $self->log;
}

# Waits until none of these processes exists.
sub all_gone {
    my ($self, @pids) = @_;
    return $self->wait_until(
        "@pids have ended",
        sub {
            !grep { kill 0, $_ } @pids;
        }
    );
}

sub DESTROY {
    my $self = shift;
    local ($?, $!, $@);
    return if !$self->{pid};
    kill TERM => $self->{pid};
    waitpid $self->{pid}, 0;
}

1;
