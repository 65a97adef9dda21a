package Kirin::AppParent;
use v5.16;
use warnings;

use File::Basename ();
use Getopt::Long qw(GetOptionsFromArray);
use IO::Handle;
use Kirin::AppParent::Again;
use Kirin::AppParent::LoadError;
use Kirin::DeathSignal;
use Kirin::Descriptors;
use Kirin::Log;
use Kirin::StackLayout;
use Kirin::Worker;
use Kirin::Worker::Hooks;
use Kirin::Worker::Scheduling;
use Plack::Util;
use POSIX ();
use Scalar::Util ();
use Socket ();
use Time::HiRes ();
use overload ();

our $VERSION = '0.001';

# A worker that ends sooner than this many seconds after its fork has died "at start".
use constant SHORT_LIFE => 1;

# The longest pause between forks, in seconds, when workers keep dying at start.
use constant LONGEST_PAUSE => 5;

# How long a request may take, in seconds, if nobody has said. Workers have this time when the front
# has gone and can no longer end them.
use constant DEADLINE => 60;

# Seconds between two checks whether the front is still there.
use constant TICK => 1;

# Runs the command line of kirin-worker. Returns the exit status.
sub main {
    my ($class, @arguments) = @_;
    my %option;
    my $again = Kirin::AppParent::Again->new(@arguments);
    GetOptionsFromArray(
        \@arguments, \%option,
        'workers=i', 'generation=i', 'name=s', 'front=i', 'max-requests=i', 'preload=s',
        'sendfile=s@', 'deadline=f',
        )
        && @arguments == 1
        && ($option{preload} // 'auto') =~ /\A(?:auto|true|false)\z/
        or die "usage: kirin-worker [--workers N] [--generation G] [--name NAME] [--front PID]"
        . " [--deadline SECONDS] [--max-requests N] [--preload auto|true|false]"
        . " [--sendfile DIRECTORY]... app.psgi\n";
    $option{max_requests} = delete $option{'max-requests'};
    my $parent = $class->new(%option, app_file => $arguments[0], again => $again);
    my $status = $parent->run;
    # While Perl ends its interpreter there are no handlers any more. A second signal must not look
    # like a violent end.
    POSIX::sigprocmask(POSIX::SIG_BLOCK(), POSIX::SigSet->new(POSIX::SIGTERM(), POSIX::SIGQUIT()));
    return $status;
}

sub new {
    my ($class, %args) = @_;
    return bless {
        workers    => 1,
        generation => 1,
        name       => 'app',
        preload    => 'auto',
        %args,
        deadline    => $args{deadline} // DEADLINE,
        front       => $args{front} // getppid(),
        alive       => {},                            # pid => { number, forked }
        short_lives => 0,
        fork_after  => 0,
        stopping    => undef,
    }, $class;
}

# Returns the exit status.
sub run {
    my $self = shift;
    # The workers will find this done.
    Kirin::StackLayout::greeting_word();
    $self->{file_name} = ($self->{app_file} =~ m{([^/]+)\z})[0] // $self->{app_file};
    $0 = "kirin: $self->{name} parent ($self->{file_name})";
    if ($self->{app}) {
        Kirin::Log::keep();
        $self->warn_of_shared_descriptors if !$self->{app_builder};
    }
    else {
        $self->take_channels;
        # Until the application is loaded, only signals to end matter.
        $self->install_signals(qw(TERM QUIT INT PIPE));
        $self->load or return 1 if $self->{preload} ne 'false';
    }
    $self->take_process_back;
    $self->load_in_first_worker or return 1 if !$self->{app};
    $self->report('ready') if !defined $self->{stopping};
    if ($self->{on_ready}) {
        $self->wait_for_front;
        $self->{on_ready}->() if !defined $self->{stopping};
    }

    until (defined $self->{stopping}) {
        $self->reap;
        $self->stop('TERM') if $self->front_is_gone;
        $self->fork_missing unless defined $self->{stopping};
        $self->dismiss_surplus;
        $self->pause;
    }
    $self->wait_for_workers;
    $self->remove_socket if $self->front_is_gone;
    return 0;
}

# The front connects when it has its own sockets.
sub wait_for_front {
    my $self = shift;
    until (defined $self->{stopping}) {
        vec(my $wanted = '', fileno $self->{listener}, 1) = 1;
        return if select($wanted, undef, undef, 0.1) > 0;
        $self->stop('TERM') if $self->front_is_gone;
    }
}

# Returns whether the application is loaded.
sub load {
    my $self = shift;
    my $before = Kirin::Descriptors::opened();
    # The application decides about signals until it is loaded.
    Kirin::DeathSignal::set(POSIX::SIGKILL());
    return 0 if $self->front_is_gone;
    my $app = eval { $self->load_file };
    my $reason = $@;
    Kirin::DeathSignal::set(0);
    return $self->cannot_load($reason) if !$app;
    if ($self->{preload} eq 'auto' and my @shared = Kirin::Descriptors::not_to_be_shared($before)) {
        Kirin::Log::line("kirin: $self->{name}: while it was loaded, the application has opened $_")
            for @shared;
        Kirin::Log::line(
            "kirin: $self->{name}: workers cannot share this: each loads the application itself"
                . ' (preload in docs/perl.md)');
        my $failure =
            $self->{again}->without_preloading($self, Kirin::Descriptors::opened_since($before));
        return $self->cannot_load($failure);
    }
    $self->{app} = $app;
    return 1;
}

# Another process has loaded the application before Kirin started. So the workers cannot load it
# themselves any more.
sub warn_of_shared_descriptors {
    my $self = shift;
    my $opened = Kirin::Descriptors::opened();
    my %ours = map { $_ => $opened->{$_} // '' } 0 .. 2,
        map { fileno $_ } @$self{qw(listener control)};
    my @shared = Kirin::Descriptors::not_to_be_shared(\%ours) or return;
    Kirin::Log::line("kirin: $self->{name}: workers share $_") for @shared;
    Kirin::Log::line("kirin: $self->{name}: what is meant for one worker may come to another;"
            . ' start plackup with -L Delayed, so that each loads the application itself (preloading in docs/perl.md)'
    );
}

# Returns the application, or dies.
sub load_file {
    my $self = shift;
    my $app = Plack::Util::load_psgi($self->{app_file});
    return $app
        if ref $app eq 'CODE' || Scalar::Util::blessed($app) && overload::Method($app, '&{}');
    die "$self->{app_file} does not return a PSGI application\n";
}

# Kirin logs the reason.
sub cannot_load {
    my ($self, $reason) = @_;
    $self->report(failed => Kirin::AppParent::LoadError::text($reason));
    return 0;
}

# Without preloading the first worker shows whether the application can be loaded. The others
# follow. Returns whether it can.
sub load_in_first_worker {
    my $self = shift;
    $self->{app_builder} = sub { $self->load_file };
    pipe my $news, $self->{news} or die "pipe: $!\n";
    my $pid = $self->fork_worker(1);
    close delete $self->{news};
    return $self->cannot_load("cannot fork: $!\n") if !defined $pid;
    my $text = '';
    until (defined $self->{stopping} || $text =~ /\n/) {
        $self->stop('TERM') if $self->front_is_gone;
        vec(my $wanted = '', fileno $news, 1) = 1;
        next if select($wanted, undef, undef, TICK) < 1;
        last if !sysread $news, $text, 64 * 1024, length $text;
    }
    return 1 if $text eq "loaded\n" || defined $self->{stopping};
    $text = "the worker that was to load the application has ended\n" if $text eq '';
    return $self->cannot_load($text);
}

# As in FastCGI, the listening socket arrives as STDIN. STDOUT of the application goes to the log,
# so that its output cannot be read as control lines.
sub take_channels {
    my $self = shift;
    open my $listener, '<&', \*STDIN or die "kirin-worker: STDIN: $!\n";
    -S $listener or die "kirin-worker: STDIN is not a socket; kirin starts this program\n";
    open STDIN, '<', '/dev/null' or die "kirin-worker: /dev/null: $!\n";
    # Several workers wait for the same connection, and only one gets it.
    $listener->blocking(0) // die "kirin-worker: listener: $!\n";
    $self->{listener} = $listener;

    open my $control, '>&', \*STDOUT or die "kirin-worker: STDOUT: $!\n";
    $self->{control} = Kirin::Log::above_standard($control);
    Kirin::Log::never_wait();
    Kirin::Log::keep();
    open STDOUT, '>&', \*STDERR or die "kirin-worker: STDERR: $!\n";
    STDOUT->autoflush(1);
    STDERR->autoflush(1);
}

# Undoes changes of the process by the application that would prevent the parent's work.
sub take_process_back {
    my $self = shift;
    # The workers restore these.
    my $ours = $self->signals;
    $self->{app_signals} = {
        map { $_ => $SIG{$_} }
        grep { $SIG{$_} && $SIG{$_} ne $ours->{$_} } qw(CHLD INT TTIN TTOU)
    };
    # An alarm that is still pending would end this process.
    alarm 0;
    Kirin::Log::occupy_closed_streams();
    $self->install_signals;
    POSIX::sigprocmask(POSIX::SIG_UNBLOCK(), Kirin::Worker::Signals::set_of(keys %$ours));
}

# Installs the handlers of these signals, or of all.
sub install_signals {
    my ($self, @names) = @_;
    my $signals = $self->signals;
    $SIG{$_} = $signals->{$_} for @names ? @names : keys %$signals;
}

sub signals {
    my $self = shift;
    return $self->{signals} //= {
        TERM => sub { $self->stop('TERM') },
        QUIT => sub { $self->stop('QUIT') },
        INT  => sub { $self->stop('INT') },
        CHLD => sub { $self->{child_ended} = 1 },
        TTIN => sub { $self->resize(1) },
        TTOU => sub { $self->resize(-1) },
        PIPE => sub { },
    };
}

# Sends one line to the front. Line ends inside become \n, so that a message of several lines stays
# one line.
sub report {
    my ($self, $word, @rest) = @_;
    my $line = join ' ', $word, @rest;
    utf8::encode($line) if utf8::is_utf8($line);
    $line =~ s/\\/\\\\/g;
    $line =~ s/\n/\\n/g;
    # The front may have gone. The next tick finds out.
    syswrite $self->{control}, "$line\n";
}

sub front_is_gone { $_[0]{front} != getppid() }

# A front that is killed cannot remove its files. The socket is in its own directory, which may be
# in the directory of the front.
sub remove_socket {
    my $self = shift;
    my $address = getsockname $self->{listener} or return;
    my $path = Socket::unpack_sockaddr_un($address);
    unlink $path or return;
    my $directory = File::Basename::dirname($path);
    for (1 .. 2) {
        # These are the files of Plack::Handler::Kirin and the front.
        unlink map { "$directory/$_" }
            qw(kirin.toml invocation workers store.sock store.snapshot kirin.lock);
        rmdir $directory or return;
        $directory = File::Basename::dirname($directory);
        return if $directory !~ m{/kirin-[^/]+\z};
    }
}

sub stop {
    my ($self, $signal) = @_;
    # A faster stop may follow a slower one.
    state $haste = { QUIT => 1, TERM => 2, INT => 3, KILL => 4 };
    $self->{stopping} = $signal
        if !$self->{stopping} || $haste->{$signal} > $haste->{ $self->{stopping} };
}

sub pause {
    my $self = shift;
    my $seconds = $self->{fork_after} - Time::HiRes::time();
    $seconds = TICK if $seconds <= 0 || $seconds > TICK;
    # A signal ends the sleep early. A signal between these two lines is seen a tick later.
    return if $self->{child_ended} || defined $self->{stopping};
    select undef, undef, undef, $seconds;
}

sub fork_missing {
    my $self = shift;
    my %taken = map { $_->{number} => 1 } values %{ $self->{alive} };
    for my $number (1 .. $self->{workers}) {
        next if $taken{$number};
        return if Time::HiRes::time() < $self->{fork_after};
        if (!defined $self->fork_worker($number)) {
            Kirin::Log::line("kirin: $self->{name}: cannot fork: $!");
            $self->back_off;
            return;
        }
        $self->{fork_after} = Time::HiRes::time() + $self->{spawn_interval}
            if $self->{spawn_interval};
    }
}

# Returns the worker's process id.
sub fork_worker {
    my ($self, $number) = @_;
    # The worker could not find out any more if this process has ended by then.
    my $parent = $$;
    my $pid = fork // return;
    $self->be_worker($number, $parent) if !$pid;
    $self->{alive}{$pid} = { number => $number, forked => Time::HiRes::time() };
    $self->report(started => $pid);
    return $pid;
}

# Adds or removes one worker. The front waits for the answer before it sends the next such signal.
sub resize {
    my ($self, $difference) = @_;
    $self->{workers} += $difference if $self->{workers} + $difference >= 1;
    $self->report(workers => $self->{workers});
}

# This repeats in each tick, for the reason in wait_for_workers.
sub dismiss_surplus {
    my $self = shift;
    kill TERM => grep { $self->{alive}{$_}{number} > $self->{workers} } keys %{ $self->{alive} };
}

sub be_worker {
    my ($self, $number, $parent) = @_;
    $SIG{$_} = $self->{app_signals}{$_} // 'DEFAULT' for qw(CHLD INT TTIN TTOU);
    Kirin::Worker::Scheduling::give_way();
    close $self->{control};
    $0 = "kirin: $self->{name} worker $number ($self->{file_name})";
    my $app = $self->{app};
    $app = $self->build_app if $self->{app_builder};
    # The application may have seeded the generator while it was loaded. No two workers may draw the
    # same numbers.
    srand;
    my $worker = Kirin::Worker->new(
        app          => $app,
        listener     => $self->{listener},
        generation   => $self->{generation},
        parent       => $parent,
        deadline     => $self->{deadline},
        multiprocess => $self->{workers} > 1,
        max_requests => $self->{max_requests},
        min_requests => $self->{min_requests},
        sendfile     => $self->{sendfile},
    );
    delete $self->{app};
    # The hooks may hang too. They may also change the user, so the worker repeats this.
    $worker->end_with_parent;
    my $finished = eval { Kirin::Worker::Hooks::run_after_fork(); $worker->run; 1 };
    Kirin::Log::line("kirin: worker $$: $@") if !$finished;
    $self->{before_exit}->($app) if $self->{before_exit};
    Kirin::Worker::Hooks::run_before_exit();
    # The parent sends TERM repeatedly until this process has ended. While Perl ends its
    # interpreter, there are no handlers any more.
    POSIX::sigprocmask(POSIX::SIG_BLOCK(), POSIX::SigSet->new(POSIX::SIGTERM(), POSIX::SIGQUIT()));
    exit($finished ? 0 : 1);
}

# Loads the application in a worker.
sub build_app {
    my $self = shift;
    # Until the application is loaded, no request waits for this worker.
    local @SIG{qw(TERM QUIT)} = ('DEFAULT') x 2;
    Kirin::DeathSignal::set(POSIX::SIGKILL());
    my $app = eval { $self->{app_builder}->() };
    my $reason = $app ? '' : $@ || "there is no application\n";
    Kirin::DeathSignal::set(0);
    if (my $news = delete $self->{news}) {
        syswrite $news, $app ? "loaded\n" : $reason =~ /\n\z/ ? $reason : "$reason\n";
        # The parent logs the reason.
        exit 1 if !$app;
    }
    elsif (!$app) {
        Kirin::Log::line("kirin: worker $$: $reason");
        exit 1;
    }
    alarm 0;
    Kirin::Log::occupy_closed_streams();
    return $app;
}

sub reap {
    my $self = shift;
    $self->{child_ended} = 0;
    while ((my $pid = waitpid -1, POSIX::WNOHANG()) > 0) {
        my $status = $?;
        my $worker = delete $self->{alive}{$pid} or next;
        $self->report(exited => $pid, $status);
        if (Time::HiRes::time() - $worker->{forked} >= SHORT_LIFE) {
            $self->{short_lives} = 0;
        }
        # Status 0: the worker left normally, for example after its number of requests, however soon
        # that was.
        elsif ($status != 0) {
            $self->{short_lives}++;
            $self->back_off if $self->{short_lives} > $self->{workers};
        }
    }
}

# Every worker may die young once without a pause. Then pauses double.
sub back_off {
    my $self = shift;
    my $doubled = $self->{short_lives} - $self->{workers};
    $doubled = 0 if $doubled < 0;
    $doubled = 6 if $doubled > 6;
    my $pause = 0.1 * 2**$doubled;
    $pause = LONGEST_PAUSE if $pause > LONGEST_PAUSE;
    $self->{fork_after} = Time::HiRes::time() + $pause;
}

# The front limits this time while it exists.
sub wait_for_workers {
    my $self = shift;
    my $gone;
    while (1) {
        $self->reap;
        last if !%{ $self->{alive} };
        if ($self->front_is_gone) {
            $gone //= Time::HiRes::time();
            $self->stop(Time::HiRes::time() - $gone > $self->{deadline} ? 'KILL' : 'TERM');
        }
        # This repeats in each tick, because a worker may have been between the check of its flag
        # and its next read. QUIT is only for this process.
        kill $self->{stopping}, keys %{ $self->{alive} } if $self->{stopping} ne 'QUIT';
        select undef, undef, undef, 0.2;
    }
}

1;

__END__

=head1 NAME

Kirin::AppParent - loads a PSGI application once and keeps its workers alive

=head1 SYNOPSIS

    # STDIN is a listening unix socket, STDOUT a pipe that the front reads
    exit Kirin::AppParent->new(app_file => 'app.psgi', workers => 4)->run;

    # Pass a loaded application instead, as Plack::Handler::Kirin does:
    Kirin::AppParent->new(
        app => $app, app_file => 'app.psgi', listener => $socket, control => $pipe, workers => 4,
    )->run;

=head1 DESCRIPTION

One such process runs for each generation of an application. It loads the application before it
forks, so that the workers share its memory, unless the application opens connections while it is
loaded (L<Kirin::Descriptors>). It replaces workers that end. It reports each of these events to the
front, one line each:

    ready
    started PID
    exited PID WAIT-STATUS
    workers N
    failed MESSAGE

With C<app> the application is already loaded. C<listener>, which must not block, and C<control>
then replace STDIN and STDOUT.

TTIN and TTOU make it keep one more or one less worker, and it answers with the new number. It ends
on TERM after the requests in progress, on QUIT when the workers have left by themselves, and on INT
at once. It also ends when the front has gone.

=head1 ARGUMENTS

=over

=item workers, generation, name, front, max_requests, preload, sendfile

As the options of L<kirin-worker>, which F<docs/worker-protocol.md> describes.

=item min_requests

With C<max_requests>: each worker draws a random number between both, after which it is replaced.

=item spawn_interval

Seconds between two forks, so that workers do not all start at the same time.

=item app_builder

Code that each worker calls after its fork. It returns the worker's application.

=item on_ready

Code that is called before the first worker is forked, when the front is there and has its
addresses.

=item before_exit

Code that is called with the application in each worker that ends normally.

=back

=cut
