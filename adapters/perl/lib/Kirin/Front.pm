package Kirin::Front;
use v5.16;
use warnings;

use Cwd ();
use Fcntl ();
use File::Basename ();
use File::Spec;
use File::Temp ();
use IO::Handle;
use IO::Socket::UNIX;
use Kirin::AppParent;
use Kirin::Invocation;
use POSIX ();
use Socket ();

# The longest path of a unix socket (unix(7)).
use constant SOCKET_PATH_BYTES => 107;

sub new {
    my ($class, %args) = @_;
    return bless {
        keep_alive => undef,
        memcached  => [],
        sendfile   => [],
        workers    => 1,
        parent     => {},
        %args,
    }, $class;
}

# Returns the path of the kirin program.
sub binary {
    my $named = $ENV{KIRIN_BINARY};
    if (defined $named && $named ne '') {
        return $named if is_program($named);
        die "KIRIN_BINARY is $named, which is not a program\n";
    }
    my $here = Cwd::abs_path(__FILE__);
    # ROOT/adapters/perl/lib/Kirin/Front.pm in the sources, PREFIX/share/kirin/adapters/perl/...
    # when installed.
    my $root = File::Spec->catdir(File::Basename::dirname($here), ('..') x 4);
    my @built = sort { -M $a <=> -M $b }
        grep { is_program($_) } map { "$root/target/$_/kirin" } qw(release debug);
    my @searched = (
        @built,
        "$root/../../bin/kirin",
        map { "$_/kirin" } File::Spec->path,
    );
    my ($found) = grep { is_program($_) } @searched;
    return Cwd::abs_path($found) if $found;
    die no_program_message("$root/target/release/kirin", "$root/target/debug/kirin", @searched);
}

sub no_program_message {
    my @searched = @_;
    my $places = join '', map { "  $_\n" } @searched;
    return <<"END";
plackup -s Kirin needs the program kirin, which is in none of these places:
${places}Install Kirin's Debian package or its archive for Linux, or build it in Kirin's sources:
  cargo build --release -p kirin
If it is in another place, set the environment variable KIRIN_BINARY to its path.
END
}

sub is_program { -f $_[0] && -x _ }

# Becomes kirin. Returns in a child process, which was the app parent, when that has to end.
sub run {
    my ($self, $app) = @_;
    my $seat = delete $ENV{KIRIN_APP_PARENT};
    return $self->sit_down($app, $seat) if defined $seat;
    my $binary = binary();
    # This must happen before any fork.
    my $invocation = Kirin::Invocation->of_this_process;
    my $ready = $self->{daemonize} ? $self->go_into_background : undef;
    $self->append_output_to($self->{error_log}) if defined $self->{error_log};

    my $directory = File::Temp::tempdir('kirin-XXXXXXXX', TMPDIR => 1);
    my ($listener, $control_in, $control_out, $pid);
    # In the child, getppid could return another process, which has inherited the child from an
    # ended kirin.
    my $front = $$;
    my $begun = eval {
        $self->write_file("$directory/kirin.toml", $self->configuration("$directory/kirin.toml"));
        $self->write_file("$directory/invocation", $invocation->text) if $invocation;
        $listener = listen_on("$directory/workers");
        pipe $control_in, $control_out or die "pipe: $!\n";
        $pid = fork // die "fork: $!\n";
        1;
    };
    my $failure = $@;
    if ($begun && !$pid) {
        close $control_in;
        return $self->be_app_parent($app, $front, $listener, $control_out, $directory, $ready);
    }
    if ($begun) {
        # Both sides do this, so that it is certain from here on.
        POSIX::setpgid($pid, $pid);
        close $control_out;
        $failure = $self->become($binary, $control_in, $directory, $pid);
        kill KILL => $pid;
        waitpid $pid, 0;
    }
    unlink map { "$directory/$_" } qw(workers kirin.toml invocation);
    rmdir $directory;
    die $failure;
}

# Returns only after a failure, with the reason.
sub become {
    my ($self, $binary, $control, $directory, $pid) = @_;
    open STDIN, '<&', $control or return "STDIN: $!\n";
    local %ENV = %ENV;
    if ($self->{inherited} && (my $failure = $self->{inherited}->hand_on)) { return $failure }
    # An ignored signal stays ignored through exec(2).
    local $SIG{$_} = 'DEFAULT'
        for grep { ($SIG{$_} // '') eq 'IGNORE' } qw(CHLD HUP INT QUIT TERM USR1 USR2);
    $ENV{KIRIN_LOG} //= 'warn';
    my @arguments = ('--directory', $directory, '--app-parent', $pid);
    push @arguments, '--pid-file', $self->{pid} if defined $self->{pid};
    no warnings 'exec';
    exec {$binary} $binary, 'serve-loaded', @arguments;
    return "$binary: $!\n";
}

# Runs in the child.
sub be_app_parent {
    my ($self, $app, $front, $listener, $control, $directory, $ready) = @_;
    POSIX::setpgid(0, 0);
    # The process is no longer in the terminal's foreground, so reading from the terminal would stop
    # it.
    open STDIN, '<', '/dev/null' or die "/dev/null: $!\n";
    $ENV{KIRIN_STORE} //= "unix:$directory/store.sock";
    $self->{inherited}->leave if $self->{inherited};
    # This handle lives as long as the process. Its end tells that the process has ended.
    our $CONTROL = $control;
    my $parent = Kirin::AppParent->new(
        %{ $self->{parent} },
        app      => $app,
        app_file => $0,
        front    => $front,
        listener => $listener,
        control  => $control,
        workers  => $self->{workers},
        deadline => scalar in_seconds($self->{deadline}),
        sendfile => $self->sendfile_roots,
        on_ready => sub {
            $self->{on_ready}->() if $self->{on_ready};
            close $ready if $ready && syswrite $ready, '.';
        },
    );
    $parent->run;
    return;
}

# kirin has started this process for another generation of the application. The environment names
# the part of the configuration.
sub sit_down {
    my ($self, $app, $seat) = @_;
    my %seat = map { split /=/, $_, 2 } split / /, $seat;
    my ($listener, $control) = map { own_descriptor($seat{$_}) } qw(listener control);
    # Several workers wait for the same connection, and only one gets it.
    $listener->blocking(0) // die "KIRIN_APP_PARENT: listener: $!\n";
    # This handle lives as long as the process. Its end tells that the process has ended.
    our $CONTROL = $control;
    Kirin::AppParent->new(
        %{ $self->{parent} },
        (map { $_ => $seat{$_} } qw(front generation name workers deadline)),
        sendfile => $self->sendfile_roots,
        app      => $app,
        app_file => $0,
        listener => $listener,
        control  => $control,
    )->run;
    return;
}

# Returns a handle of a descriptor that must not pass through exec(2).
sub own_descriptor {
    my $number = shift // '';
    open my $handle, '+<&=', $number or die "KIRIN_APP_PARENT: descriptor $number: $!\n";
    fcntl $handle, Fcntl::F_SETFD(), Fcntl::FD_CLOEXEC() or die "fcntl: $!\n";
    return $handle;
}

sub sendfile_roots {
    [map { Cwd::abs_path($_) // $_ } @{ $_[0]{sendfile} }]
}

sub listen_on {
    my $path = shift;
    length $path <= SOCKET_PATH_BYTES
        or die
        "$path is longer than the path of a unix socket may be: set TMPDIR to a shorter one\n";
    my $listener = IO::Socket::UNIX->new(Local => $path, Listen => Socket::SOMAXCONN)
        or die "$path: $!\n";
    # Several workers wait for the same connection, and only one gets it.
    $listener->blocking(0);
    return $listener;
}

# The first process waits until the server is ready, and ends. Returns the channel that reports
# this.
sub go_into_background {
    my $self = shift;
    pipe my $in, my $out or die "pipe: $!\n";
    $_->flush for \*STDOUT, \*STDERR;
    my $pid = fork // die "fork: $!\n";
    if ($pid) {
        close $out;
        my $is_ready = sysread $in, my $byte, 1;
        if (!$is_ready) {
            my $where = $self->{error_log} // 'nowhere without the option error-log';
            print STDERR "The server has not started. Its log: $where\n";
        }
        POSIX::_exit($is_ready ? 0 : 1);
    }
    POSIX::setsid();
    open STDIN, '<', '/dev/null' or die "/dev/null: $!\n";
    $self->append_output_to($self->{error_log} // '/dev/null');
    return $out;
}

sub append_output_to {
    my ($self, $path) = @_;
    open my $log, '>>', $path or die "$path: $!\n";
    open STDOUT, '>&', $log or die "STDOUT: $!\n";
    open STDERR, '>&', $log or die "STDERR: $!\n";
}

sub write_file {
    my ($self, $path, $text) = @_;
    open my $file, '>:raw', $path or die "$path: $!\n";
    print {$file} $text or die "$path: $!\n";
    close $file or die "$path: $!\n";
}

# Returns Kirin's configuration. $load stands for the application, which Kirin must not load.
sub configuration {
    my ($self, $load) = @_;
    my $toml = '';
    $toml .= "threads = $self->{threads}\n\n" if $self->{threads};
    for my $address (@{ $self->{listen} }) {
        $toml .= "[[listener]]\naddress = " . quoted($address) . "\n";
        $toml .= 'keep_alive = ' . quoted("$self->{keep_alive}s") . "\n" if $self->{keep_alive};
        $toml .= 'trusted = ' . list(@{ $self->{trusted} }) . "\n" if $self->{trusted};
        $toml .= "\n";
    }
    $toml .= "[store]\n";
    $toml .= 'memory = ' . quoted(in_bytes($self->{memory})) . "\n" if defined $self->{memory};
    $toml .= 'memcached = ' . list(@{ $self->{memcached} }) . "\n\n";
    $toml .= "[[app]]\nname = \"web\"\nload = " . quoted($load) . "\nworkers = $self->{workers}\n";
    for my $time (qw(deadline start_limit queue_wait)) {
        $toml .=
            "$time = "
            . quoted($self->{$time} =~ /[smh]\z/ ? $self->{$time} : "$self->{$time}s") . "\n"
            if defined $self->{$time};
    }
    $toml .= "queue = $self->{queue}\n" if defined $self->{queue};
    $toml .= 'body_limit = ' . quoted(in_bytes($self->{body_limit})) . "\n"
        if defined $self->{body_limit};
    $toml .= 'sendfile = ' . list(map { Cwd::abs_path($_) // $_ } @{ $self->{sendfile} }) . "\n";
    $toml .= "\n[[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\n";
    return $toml;
}

# Returns a time of the configuration in seconds.
sub in_seconds {
    my ($number, $unit) = ($_[0] // '') =~ /\A([0-9]+)(s|m|h)?\z/ or return;
    return $number * { s => 1, m => 60, h => 3600 }->{ $unit // 's' };
}

sub in_bytes { $_[0] =~ /B\z/ ? $_[0] : "$_[0]B" }

sub list {
    '[' . join(', ', map { quoted($_) } @_) . ']';
}

# Returns a TOML basic string.
sub quoted {
    my $text = shift;
    $text =~ s/([\\"])/\\$1/g;
    $text =~ s/\$\{/\$\${/g;
    $text =~ s/([\x00-\x1F\x7F])/sprintf '\\u%04X', ord $1/ge;
    return qq("$text");
}

1;

__END__

=head1 NAME

Kirin::Front - puts the kirin program in front of an application that is loaded already

=head1 SYNOPSIS

    Kirin::Front->new(listen => ['127.0.0.1:8080'], workers => 5)->run($app);

=head1 DESCRIPTION

This module does the work of L<Plack::Handler::Kirin> after that has read its options.

This process gets a pipe, and the listening socket of the workers in a private directory. It forks.
The child is the app parent (L<Kirin::AppParent>). The process itself becomes C<kirin serve-loaded>
with exec(2), with the other end of the pipe, the control channel, as its STDIN. So everything is as
if Kirin had started the app parent: the app parent is Kirin's child, leads a process group, ends
when Kirin ends, and is ended by Kirin. The process that has started this one waits for Kirin's end,
and its signals reach Kirin.

C<run> returns in the child when the server stops. It dies if Kirin cannot be started.

For new code (HUP), F<kirin> runs the command again with which this process was started
(L<Kirin::Invocation>). In the new process C<run> finds C<KIRIN_APP_PARENT>, and becomes the app
parent at once.

=head1 FUNCTIONS

=over

=item Kirin::Front::binary()

Returns the path of the program. Dies with the list of searched places if there is none.

=back

=cut
