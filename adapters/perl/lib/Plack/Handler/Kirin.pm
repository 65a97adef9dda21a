package Plack::Handler::Kirin;
use v5.16;
use warnings;

use Carp ();
use Cwd ();
use Kirin::Front;
use Kirin::Inherited;
use Kirin::Worker;

our $VERSION = $Kirin::Worker::VERSION;

# Options and the patterns of their values. Values of options without a pattern are not checked.
my $COUNT = qr/\A[1-9][0-9]{0,8}\z/;
my $SECONDS = qr/\A[0-9]{1,8}(?:\.[0-9]+)?\z/;
my $TIME = qr/\A[1-9][0-9]{0,8}[smh]?\z/;
my $SIZE = qr/\A[1-9][0-9]{0,12}(?:B|KB|MB|GB)?\z/;
my %OPTION = (
    host               => undef,
    port               => undef,
    socket             => undef,
    listen             => undef,
    listen_sock        => undef,
    server_ready       => undef,
    daemonize          => undef,
    pid                => undef,
    error_log          => undef,
    max_workers        => qr/\A[0-9]{1,4}\z/,
    max_reqs_per_child => qr/\A[0-9]{1,9}\z/,
    min_reqs_per_child => qr/\A[0-9]{1,9}\z/,
    spawn_interval     => $SECONDS,
    keepalive_timeout  => $SECONDS,
    keepalive          => undef,
    child_exit         => undef,
    threads            => $COUNT,
    deadline           => $TIME,
    queue              => $COUNT,
    queue_wait         => $TIME,
    start_limit        => $TIME,
    body_limit         => $SIZE,
    memory             => $SIZE,
    memcached          => undef,
    sendfile           => undef,
    trusted            => undef,
);

# Other names of the same options.
my %ALIAS = (
    workers      => 'max_workers',
    max_requests => 'max_reqs_per_child',
    min_requests => 'min_reqs_per_child',
    pid_file     => 'pid',
);

# Other servers need these because a connection costs them a worker, or because they read from
# clients in Perl.
my %NO_EFFECT = map { $_ => 1 } qw(
    backlog err_respawn_interval main_process_delay max_keepalive_connection max_keepalive_reqs max_readahead_reqs
    read_timeout server_software timeout write_timeout
);

# Monoceros' default. Kirin's own is the same.
use constant WORKERS => 5;

# A proxy on the same machine, as there usually is in front of Starlet.
use constant TRUSTED => qw(127.0.0.0/8 ::1 unix:);

# The default of programs. plackup gives 5000.
use constant DEFAULT_PORT => 8080;

sub new {
    my ($class, @args) = @_;
    my %option;
    while (my ($name, $value) = splice @args, 0, 2) {
        $name =~ tr/-/_/;
        $name = $ALIAS{$name} // $name;
        # plackup turns --disable-keepalive into "keepalive" with a false value.
        ($name, $value) = (keepalive => !$value) if $name eq 'disable_keepalive';
        if (!exists $OPTION{$name}) {
            warn "Plack::Handler::Kirin: option $name is not known\n" if !$NO_EFFECT{$name};
        }
        elsif (defined $value) {
            my $pattern = $OPTION{$name};
            Carp::croak("Plack::Handler::Kirin: option $name cannot be '$value'")
                if $pattern && $value !~ $pattern;
            $option{$name} = $value;
        }
    }
    my $self = bless { %option, server_software => 'Kirin' }, $class;
    $self->{child_exit} = code_block($self->{child_exit}) if defined $self->{child_exit};
    # Another process listens.
    return $self if defined $ENV{KIRIN_APP_PARENT};
    $self->{inherited} = eval { $self->inherited } or Carp::croak("Plack::Handler::Kirin: $@");
    $self->{listen} = $self->inherited_addresses || $self->listen_addresses;
    return $self;
}

sub as_list { ref $_[0] ? @{ $_[0] } : split /,/, $_[0] }

# As with Starlet, it may come as text from the command line.
sub code_block {
    my $code = shift;
    return $code if ref $code eq 'CODE';
    my $compiled = eval $code;    ## no critic: that is what the option is
    Carp::croak("Plack::Handler::Kirin: child_exit is not a code block: " . ($@ || $code))
        if ref $compiled ne 'CODE';
    return $compiled;
}

sub inherited {
    my $self = shift;
    my $handles = delete $self->{listen_sock};
    return Kirin::Inherited->from_environment if !defined $handles;
    return Kirin::Inherited->from_handles(ref $handles eq 'ARRAY' ? @$handles : $handles);
}

# Inherited sockets have precedence over options, because plackup always gives a port.
sub inherited_addresses {
    my $self = shift;
    my %is_store = map { address($_) => 1 }
        ref $self->{memcached} ? @{ $self->{memcached} } : $self->{memcached} // ();
    my @addresses = grep { !$is_store{$_} } $self->{inherited}->addresses or return;
    @$self{qw(host port)} =
        $addresses[0] =~ /\A(.*):([0-9]+)\z/ ? ($1, $2) : (undef, $addresses[0] =~ s/\Aunix://r);
    return \@addresses;
}

# plackup gives "listen", or the options from which it made that, or both.
sub listen_addresses {
    my $self = shift;
    my @given = ref $self->{listen} ? @{ $self->{listen} } : $self->{listen} // ();
    if (!@given) {
        # Starlet accepts a path as port.
        $self->{socket} //= delete $self->{port} if ($self->{port} // '') =~ /[^0-9]/;
        $self->{port} //= DEFAULT_PORT if !defined $self->{socket};
        @given = $self->{socket} // join ':', $self->{host} // '', $self->{port};
    }
    my @addresses = map { address($_) } @given;
    # plackup prints this when the server is ready.
    $self->{port} //= $self->{socket} // $given[0];
    return \@addresses;
}

# Formats HOST:PORT, :PORT or a path as Kirin writes it.
sub address {
    my $text = shift;
    if ($text =~ /\A(.*):([0-9]+)\z/s) {
        my ($host, $port) = ($1, $2);
        $host = '*' if $host eq '' || $host eq '0';
        $host = "[$host]" if $host =~ /:/ && $host !~ /\A\[/;
        return "$host:$port";
    }
    $text =~ s/\Aunix://;
    return 'unix:' . Cwd::abs_path('.') . "/$text" if $text !~ m{\A/};
    return "unix:$text";
}

sub run {
    my ($self, $app) = @_;
    my $child_exit = $self->{child_exit};
    my $disabled = exists $self->{keepalive} && !$self->{keepalive};
    my $keep_alive = $disabled ? 1 : $self->{keepalive_timeout};
    my $max_requests = $self->{max_reqs_per_child} || undef;
    my $front = Kirin::Front->new(
        listen     => $self->{listen},
        inherited  => $self->{inherited},
        keep_alive => defined $keep_alive ? int($keep_alive) || 1 : undef,
        memcached  => ref $self->{memcached} ? $self->{memcached} : [$self->{memcached} // ()],
        sendfile   => ref $self->{sendfile} ? $self->{sendfile} : [$self->{sendfile} // ()],
        trusted => [grep { length } defined $self->{trusted} ? as_list($self->{trusted}) : TRUSTED],
        workers => $self->{max_workers} // WORKERS || 1,
        (
            map { $_ => $self->{$_} }
                qw(
                body_limit daemonize deadline error_log memory pid queue queue_wait start_limit threads
                )
        ),
        on_ready => sub { $self->{server_ready}->($self) if $self->{server_ready} },
        parent   => {
            max_requests   => $max_requests,
            min_requests   => $max_requests && $self->{min_reqs_per_child} || undef,
            spawn_interval => $self->{spawn_interval},
            # With Plack::Loader::Delayed the worker loads the application before its first request,
            # not in it.
            app_builder => $self->{psgi_app_builder},
            before_exit => $child_exit && sub { $child_exit->($self, $_[0]) },
        },
    );
    return $front->run($app);
}

1;

__END__

=head1 NAME

Plack::Handler::Kirin - run a PSGI application behind Kirin with plackup

=head1 SYNOPSIS

    plackup -s Kirin -p 8080 app.psgi
    plackup -s Kirin -E deployment --max-workers 10 --listen :8080 --listen /run/app.sock app.psgi

    # In a program
    Plack::Loader->load('Kirin', host => '127.0.0.1', port => 8080, max_workers => 4)->run($app);

    # All of an application's tests through a real server
    PLACK_TEST_IMPL=Server PLACK_SERVER=Kirin prove -l t

=head1 DESCRIPTION

Puts the C<kirin> program in front of an application that this process has loaded. For production
use C<kirin serve app.psgi> or C<kirin serve --config kirin.toml>, which can do more: new code
without a pause, several applications, files, routes. This handler is for programs that expect a
Plack handler.

C<run> forks. The child, with the application, becomes the parent of the workers. This process
becomes C<kirin> with exec(2), so its process id is the server's. These signals can be sent to it:

=over

=item TERM, QUIT

Kirin accepts no further connections and finishes the responses in progress. Then the workers leave.

=item INT

Kirin ends at once.

=item TTIN, TTOU

One worker more, one less.

=item HUP

New code: Kirin runs the command of this process again, in the same directory and environment. The
new workers take over when they are ready. If that fails, the old workers continue, and the log has
the reason. L</NEW CODE> has the details.

=item USR2

A new C<kirin>, and new code, replace the old ones. See F<docs/deploy.md>.

=back

When C<kirin> ends, for whatever reason, the workers end. When the app parent ends, C<kirin> ends
with status 1. C<run> returns in the child when the server stops. So C<END> blocks run once, in the
process that has loaded the application.

C<kirin> is the first of these: the environment variable C<KIRIN_BINARY>; F<target/release/kirin> or
F<target/debug/kirin>, the newer one, of the source tree of this file; F<bin/kirin> of the prefix in
which this file is installed; C<kirin> in C<PATH>. It logs only warnings and errors to STDERR.
C<KIRIN_LOG=info> shows more.

=head1 OPTIONS

Options on plackup's command line have hyphens, C<--max-workers 5>. In Perl they have underscores.
The handler warns about unknown options.

=head2 Where to listen

=over

=item host, port (-o, -p)

Default: all addresses, port 8080 (plackup: 5000).

=item socket (-S)

Path of a unix socket, instead of a port.

=item listen (-l)

C<HOST:PORT>, C<:PORT> or a path. May be repeated.

=item listen_sock

In Perl only: a listening socket, or an array of them, to serve on.

=back

Sockets of L<start_server> (C<SERVER_STARTER_PORT>) or systemd (C<LISTEN_FDS>) have precedence over
all of these except C<listen_sock>:

    start_server --port 80 --path /run/app.sock -- plackup -s Kirin -E production app.psgi
    kill -HUP PID-OF-START_SERVER      # new code, without a lost request

=head2 Of Starlet and Monoceros

=over

=item max-workers, workers

Number of worker processes. Default: 5, as in Monoceros. 0 is 1 here. (With it Starlet works without
workers.)

=item max-reqs-per-child, max-requests

Number of requests after which a worker is replaced. Up to a tenth is subtracted at random. Default:
0, never (Starlet: 100).

=item min-reqs-per-child, min-requests

Each worker draws its number between this and C<max-reqs-per-child>.

=item spawn-interval

Seconds between two forks of workers. Default: none.

=item child-exit

Code, or its text (C<--child-exit='sub { ... }'>). It is called with the handler and the application
in each worker that leaves normally. Hooks for the parent are Perl's own C<END> blocks.

=item keepalive-timeout

Seconds for which an idle connection is kept, at least 1. Default: 75 (Starlet: 2, Monoceros: 10). A
small number is not necessary: an idle connection costs about a kilobyte and no worker.

=item disable-keepalive

Idle connections are kept only for a second. Responses do not have C<Connection: close>.

=item max-keepalive-reqs, max-keepalive-connection, max-readahead-reqs

No effect. The number of requests of a connection has no limit, because a connection costs no
worker.

=item timeout, read-timeout, write-timeout

No effect. They limit how long a worker waits for a client, and a Kirin worker never waits for one.
C<kirin> has its own limits for slow clients. C<deadline> limits the time of the application.

=item err-respawn-interval, main-process-delay, backlog, server-software

No effect. When workers die at start, the pause before the next fork grows from 0.1 to 5 seconds.

=back

=head2 Of plackup and Starman

=over

=item daemonize (-D)

Goes into the background when the server is ready. The status is 1 if it cannot start. STDERR is
then F</dev/null> unless there is C<error-log>.

=item pid

File for the process id. It is removed at the end.

=item error-log

File to which STDOUT and STDERR are appended.

=item -E, -L Delayed, -L Restarter (-r, -R), -L Shotgun

As with any handler. With Delayed each worker loads the application before its first request. This
is for applications that connect to a database while they are loaded. The log warns of these
(F<docs/perl.md>).

=item server_ready

In Perl only: a code reference. It is called with the handler when the server accepts connections.
It is called in the app parent, not in the process that becomes C<kirin>.

=back

=head2 Of Kirin

These are keys of Kirin's configuration. F<docs/configuration.md> has their defaults.

=over

=item deadline, start-limit

Time for a request, and for the start of the first worker, such as C<60s> or C<5m>. Kirin kills a
worker that takes longer, and the client gets 504. Default: 60s.

=item queue, queue-wait

How many requests may wait for a worker, and how long. Default: 1024, 30s.

=item body-limit

The longest request body. Default: 64MB.

=item memory

Memory for the store, from which Kirin serves the pages that the application has stored. See
L<Kirin::Store>. Default: 64MB.

=item memcached

Address of the store for other processes, C<HOST:PORT> or C<unix:PATH>. May be an array. Workers
find the store in C<$ENV{KIRIN_STORE}>. It is set after the application has been loaded for the
first time, so read it at its use.

=item sendfile

Directory, or array of directories, with files that the application may name in C<X-Sendfile>.
C<kirin> also sends a file that the application has opened and returns with a C<path>, as
L<Plack::Middleware::Static> does, wherever the file is.

=item trusted

Proxies in front of C<kirin> whose C<X-Forwarded-For> and C<X-Forwarded-Proto> count. The value is
addresses and networks, as an array or separated by commas. C<unix:> means all clients of a unix
socket. The application finds the values in C<REMOTE_ADDR> and C<psgi.url_scheme>. It does not see
the fields themselves, nor those of other clients. So L<Plack::Middleware::ReverseProxy> is not
needed and does no harm. Default: C<127.0.0.0/8,::1,unix:>. C<''> means no proxies.

=item threads

Number of event loops. Default: the number of cores.

=back

=head1 NEW CODE

HUP and USR2 run the command again: C<$^X>, C<-I> for each directory in C<@INC>, C<$0> and C<@ARGV>.
In the new process for HUP, C<run> becomes the parent of the new workers at once. C<server_ready> is
not called again. The options C<workers> and those under L</Of Kirin> stay unchanged. The others are
those of the command.

These values are recorded when this module is loaded. With C<plackup> that is after the application.
So changes of the application to C<%ENV> while it is loaded are there from the start the next time.
C<plackup -MPlack::Handler::Kirin -s Kirin> records them before. Modules and debuggers that F<perl>
itself was told to load (C<perl -M>, C<-d>) are not loaded again. C<PERL5OPT> is in the environment.

In a forked process (C<-r>, tests) it is refused, with a line in the log, because its command may
lead elsewhere. It is also refused if C<$0> is not a file. If the app parent is killed before the
first HUP, C<kirin> ends. Later app parents are started again.

=head1 SEE ALSO

L<Kirin::Front>, F<docs/perl.md> in Kirin's sources

=cut
