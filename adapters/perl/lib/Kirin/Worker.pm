package Kirin::Worker;
use v5.16;
use warnings;

use Errno qw(EINTR);
use IO::Handle;
use Kirin::DeathSignal;
use Kirin::Log;
use Kirin::Ring;
use Kirin::StackLayout;
use Kirin::Worker::Cleanup;
use Kirin::Worker::Input;
use Kirin::Worker::Parsed;
use Kirin::Worker::Response;
use Kirin::Worker::RingLoop;
use Kirin::Worker::Signals;
use Kirin::Worker::Stream;
use Kirin::Worker::Trace;
use Kirin::Worker::WriteWatch;
use Kirin::Worker::Writer;
use Plack::Util;
use POSIX ();
use Socket qw(MSG_NOSIGNAL);

our $VERSION = '0.001';

# The front sends a request head and a body of up to this size with one write.
use constant READ_BYTES => 64 * 1024;

# The longest request head. The front's own limit is lower.
use constant HEAD_BYTES => 256 * 1024;

# How long a request may take, in seconds, if nobody has said.
use constant DEADLINE => 60;

# How many seconds more a worker that has lost its parent has for its request. Kirin or the parent
# ends it earlier if one of them is still there.
use constant LAST_SECONDS => 1;

# What serve returns after the only request that it was to serve.
use constant NEXT => 'next';

# Workers that started together must not all leave together. So up to this part of max_requests is
# subtracted at random.
use constant JITTER => 0.1;

sub new {
    my ($class, %args) = @_;
    my $self = bless {
        generation => 1,
        parent     => getppid(),
        deadline   => DEADLINE,
        %args,
        pid      => $$,
        stopping => 0,
        },
        $class;
    if (my $max = $self->{max_requests}) {
        my $spread =
            defined $self->{min_requests} ? $max - $self->{min_requests} : int $max * JITTER;
        $self->{requests_left} = $max - int rand(1 + ($spread > 0 ? $spread : 0));
    }
    $self->open_no_input;
    # These values are the same in every request. A list fills a hash faster than another hash does.
    $self->{always} = [
        'psgi.version'         => [1, 1],
        'psgi.url_scheme'      => 'http',
        'psgi.errors'          => \*STDERR,
        'psgi.multithread'     => Plack::Util::FALSE,
        'psgi.multiprocess'    => $args{multiprocess} ? Plack::Util::TRUE : Plack::Util::FALSE,
        'psgi.run_once'        => Plack::Util::FALSE,
        'psgi.nonblocking'     => Plack::Util::FALSE,
        'psgi.streaming'       => Plack::Util::TRUE,
        'psgix.input.buffered' => Plack::Util::TRUE,
        'psgix.harakiri'       => Plack::Util::TRUE,
        'psgix.cleanup'        => Plack::Util::TRUE,
        # The front reads a response as fast as the worker writes it, up to a megabyte ahead of the
        # client.
        'psgix.output.buffered' => Plack::Util::TRUE,
        'psgix.logger'          => \&log_message,
        SERVER_SOFTWARE         => 'Kirin',
    ];
    return $self;
}

# Accepts connections and serves them, until the worker must leave.
sub run {
    my $self = shift;
    my $stop = sub { $self->{stopping} = 1; $self->limit_orphan };
    # With USR2 the front asks where a request hangs that took too long. The worker must not
    # continue after that.
    my $tell = sub {
        $self->{stopping} = 1;
        Kirin::Worker::Trace::log_overdue(${ $self->{env} }) if $self->{env} && ${ $self->{env} };
    };
    # This handler does nothing. If the signal were ignored, programs that the application starts
    # would inherit that.
    Kirin::Worker::Signals::install(TERM => $stop, QUIT => $stop, USR2 => $tell, PIPE => sub { });
    $self->end_with_parent;
    # A handler that the application has installed while it was loaded stays.
    local $SIG{__DIE__} = $SIG{__DIE__} || \&Kirin::Worker::Trace::remember;
    while (my $socket = $self->accept) {
        my $ring = $self->attach($socket);
        my $goes_on =
            $ring ? Kirin::Worker::RingLoop::serve($self, $ring, $socket) : $self->serve($socket);
        last if !$goes_on;
    }
}

# Lets this process end with its parent. A request in progress may take its time, and no more.
sub end_with_parent {
    my $self = shift;
    my ($parent, $seconds) = ($self->{parent}, $self->{deadline} + LAST_SECONDS);
    return Kirin::Ring::end_with_parent($parent, int 1000 * $seconds)
        if Kirin::Ring::is_available();
    Kirin::DeathSignal::set(POSIX::SIGTERM());
    # The parent may have ended before.
    kill TERM => $$ if getppid() != $parent;
}

# Without the compiled part an alarm ends a worker that has lost its parent. Perl handles signals
# between its own operations, so this does not reach code of a library that does not return.
sub limit_orphan {
    my $self = shift;
    return if Kirin::Ring::is_available() || getppid() == $self->{parent};
    $SIG{ALRM} = 'DEFAULT';
    POSIX::sigprocmask(POSIX::SIG_UNBLOCK(), POSIX::SigSet->new(POSIX::SIGALRM()));
    alarm POSIX::ceil($self->{deadline} + LAST_SECONDS) if !$self->{has_alarm}++;
}

# Returns the next connection of the front, or nothing when it is time to leave. The pause lets a
# worker notice that its parent has gone. It could miss that only while it waits for a connection.
sub accept {
    my $self = shift;
    until ($self->{stopping} || getppid() != $self->{parent}) {
        vec(my $wanted = '', fileno $self->{listener}, 1) = 1;
        my $found = select $wanted, undef, undef, 1;
        next if $found < 1;
        # Another worker may have been faster.
        CORE::accept(my $socket, $self->{listener}) or next;
        $socket = Kirin::Log::above_standard($socket);
        my $greeting = "KIRIN/1 pid=$$ generation=$self->{generation} adapter=perl/$VERSION";
        $greeting .= ' speaks=2 body=descriptor' if Kirin::Ring::is_available();
        $greeting = join ' ', $greeting, Kirin::StackLayout::greeting_word();
        my @parsed = Kirin::Worker::Parsed::wanted();
        $greeting .= ' parsed=' . join ',', @parsed if @parsed;
        return $socket if send $socket, "$greeting\n", MSG_NOSIGNAL;
    }
    return;
}

# Returns the ring that the front offers, if there is one.
sub attach {
    my ($self, $socket) = @_;
    return if !Kirin::Ring::is_available();
    until ($self->{stopping}) {
        my $ring = Kirin::Ring->attach(fileno $socket, $self->{parent});
        return $ring if $ring || $! != EINTR;
    }
    return;
}

# Serves the requests of one connection, or only the next one. Returns true if the front has cut it
# inside a response, after which the worker can still serve. Returns false if the worker must end,
# and NEXT after one request.
sub serve {
    my ($self, $socket, $only_one) = @_;
    my ($app, $always) = @$self{qw(app always)};
    my ($env, $watch);
    $always = [
        @$always,
        'psgix.informational' => sub {
            # It could not tell these bytes from those of the application.
            undef $watch;
            Kirin::Worker::Response::send_informational($socket, @_);
        }
    ];
    local $self->{env} = \$env;
    local $Kirin::Log::Request = \$env;
    my $takes_descriptors = Kirin::Ring::is_available();
    until ($self->{stopping}) {
        my ($buffer, $descriptor);
        my $count =
            $takes_descriptors
            ? Kirin::Ring::receive(fileno $socket, $buffer, READ_BYTES, $descriptor)
            : sysread $socket, $buffer, READ_BYTES;
        if (!$count) {
            next if !defined $count && $! == EINTR;
            return 0;
        }
        # LENGTH ":" NAME NUL VALUE NUL … NAME NUL VALUE NUL "," BODY
        my $colon = index $buffer, ':';
        my $comma = $colon < 1 ? 0 : $colon + 1 + substr $buffer, 0, $colon;
        if ($colon < 1 || $comma >= $count) {
            ($colon, $comma) = $self->read_head($socket, \$buffer) or return 0;
        }
        my %env = (
            @$always, 'psgix.cleanup.handlers' => [], split /\0/,
            substr($buffer, $colon + 1, $comma - $colon - 2), -1
        );
        $env = \%env;
        # The keys of Kirin::Store are those of the site.
        $Kirin::Store::Site = $env{KIRIN_SITE};
        $env{'psgi.url_scheme'} = 'https' if exists $env{HTTPS};
        my $not_kept;
        if (!$env{CONTENT_LENGTH}) {
            $env{'psgi.input'} =
                defined fileno $self->{no_input} ? $self->{no_input} : $self->open_no_input;
        }
        else {
            ($env{'psgi.input'}, $not_kept) =
                defined $descriptor
                ? Kirin::Worker::Input::of_descriptor($descriptor)
                : Kirin::Worker::Input::receive(
                $socket, $env{CONTENT_LENGTH}, substr $buffer,
                $comma + 1
                );
            return 0 if !$env{'psgi.input'} && !defined $not_kept;
        }
        # The values that the front has parsed are valid as long as this is the input.
        $env{'kirin.form.input'} = $env{'psgi.input'} if exists $env{'kirin.form'};

        # The application gets its own handle, so its changes and its buffers do not affect this
        # one.
        my $may_switch =
               exists $env{HTTP_UPGRADE}
            && !$env{CONTENT_LENGTH}
            && $env{SERVER_PROTOCOL} eq 'HTTP/1.1';
        undef $watch;
        if ($may_switch) {
            $watch = Kirin::Worker::WriteWatch->new($socket);
            open $env{'psgix.io'}, '+<&', $socket or die "psgix.io: $!\n";
            $env{'psgix.io'}->autoflush(1);
        }

        # A complete response comes back as bytes. Any other kind sends itself.
        my $leaving = $self->{requests_left} && --$self->{requests_left} < 1;
        my $stream;
        my $output = defined $not_kept ? $self->refuse_body($env, $not_kept, $leaving) : eval {
            my $response = $app->($env);
            Kirin::Worker::Signals::restore();
            $leaving ||= $self->{stopping} || $env{'psgix.harakiri.commit'};
            !$may_switch && ref $response eq 'ARRAY' && ref $response->[2] eq 'ARRAY'
                ? Kirin::Worker::Response::whole($response, $env, $leaving)
                : ($stream = $self->stream($socket, $env, $leaving, watch => $watch))
                ->send($response);
        };
        if (!defined $output) {
            # A process that the application has forked must not answer in the worker's place.
            exit 1 if $$ != $self->{pid} && Kirin::Worker::Trace::log_failure($env, $@);
            Kirin::Worker::Signals::restore();
            Kirin::Worker::Trace::log_failure($env, $@);
            return $self->hang_up($socket, $env, $leaving)
                if $stream && $stream->has_begun || $watch && $watch->has_written;
            $output = Kirin::Worker::Response::internal_server_error($env, $leaving);
        }
        # Most responses take one write.
        my $written = $output eq '' ? 0 : send $socket, $output, MSG_NOSIGNAL;
        if (($written // 0) != length $output) {
            eval { Kirin::Worker::Writer::write_all($socket, substr $output, $written // 0) }
                or return $self->hang_up($socket, $env, $leaving);
        }
        # Without a watch nobody knows whether the application has switched protocols.
        return $self->hang_up($socket, $env, $leaving)
            if $stream && $stream->has_switched || $may_switch && !$watch;
        if (Kirin::Worker::Cleanup::is_wanted($env)) {
            return $self->hang_up($socket, $env, $leaving)
                if $stream && !$stream->cleanup_is_announced;
            # The front counts the time until this reports the end, or until the worker leaves.
            Kirin::Worker::Cleanup::run($env);
            $leaving ||= $self->{stopping};
            send $socket, "\n", MSG_NOSIGNAL if !$leaving && !$env{'psgix.harakiri.commit'};
        }
        return 0 if $leaving || $env{'psgix.harakiri.commit'};
        # Objects of the application in the environment must go before the next request comes.
        undef $env;
        return NEXT if $only_one;
    }
    return 0;
}

# Returns the response to a request whose body cannot be kept. The application does not see it.
sub refuse_body {
    my ($self, $env, $reason, $leaving) = @_;
    my ($method, $uri) = @$env{qw(REQUEST_METHOD REQUEST_URI)};
    Kirin::Log::line("kirin: worker $$: $method $uri: the request body is refused: $reason");
    return Kirin::Worker::Response::insufficient_storage($env, $leaving || $self->{stopping});
}

# Returns what sends a response that is not an array of strings.
sub stream {
    my ($self, $socket, $env, $leaving, %by_ring) = @_;
    return Kirin::Worker::Stream->new(
        socket   => $socket,
        env      => $env,
        leaving  => $leaving,
        sendfile => $self->{sendfile},
        deliver  => sub { Kirin::Worker::Writer::write_all($socket, $_[0]) },
        %by_ring,
    );
}

# Ends a connection that was cut, or of which the front cannot know that the worker is not idle yet.
# Returns whether the worker accepts another one.
sub hang_up {
    my ($self, $socket, $env, $leaving) = @_;
    # The application may have kept its own handle, or a process that it has forked.
    delete $env->{'psgix.io'};
    shutdown $socket, 2;
    close $socket;
    Kirin::Worker::Cleanup::run($env);
    return !($leaving || $env->{'psgix.harakiri.commit'});
}

# psgix.logger
sub log_message {
    my $entry = shift;
    my $message = $entry->{message} // '';
    utf8::encode($message) if utf8::is_utf8($message);
    my $level = $entry->{level} // 'info';
    Kirin::Log::line("kirin: worker $$: $level: $message");
}

# Reads the rest of a head that did not come with one read. Returns where it starts and ends.
sub read_head {
    my ($self, $socket, $buffer) = @_;
    while (1) {
        my $colon = index $$buffer, ':';
        my $digits = $colon < 0 ? $$buffer : substr $$buffer, 0, $colon;
        if ($digits !~ /\A[1-9][0-9]{0,6}\z/ || $digits > HEAD_BYTES) {
            Kirin::Log::line("kirin: worker $$: what came is not a request head");
            return;
        }
        if ($colon > 0 && length $$buffer > $colon + 1 + $digits) {
            return ($colon, $colon + 1 + $digits);
        }
        my $count = sysread $socket, $$buffer, READ_BYTES, length $$buffer;
        return if !$count && (defined $count || $! != EINTR);
    }
}

# Returns the empty psgi.input that requests without a body share. It is made again if an
# application has closed it.
sub open_no_input {
    my $self = shift;
    open my $handle, '<', \'' or die "empty handle: $!";
    return $self->{no_input} = $handle;
}

1;

__END__

=head1 NAME

Kirin::Worker - serves requests that Kirin sends, one at a time

=head1 SYNOPSIS

    # $listener is a listening unix socket on which the front connects
    Kirin::Worker->new(app => $app, listener => $listener)->run;

=head1 DESCRIPTION

A worker accepts a connection from the front and answers its requests with a PSGI application.
F<docs/worker-protocol.md> describes the protocol. The front does the waiting, the parsing of HTTP,
and the work for slow clients and request bodies in pieces. So C<serve> is the complete loop. For a
response that is an array it makes two system calls a request.

After TERM and QUIT the worker finishes the request in progress, and C<run> returns. After USR2 it
logs the Perl stack of the request in progress. The front sends USR2 when a request has taken too
long, and KILL a second later. Perl runs signal handlers only between its own operations. So a C
library that restarts its system calls is not interrupted, and the log has no stack then.

=head1 PSGI

The worker supports all of C<psgi.*> 1.1 with C<psgi.streaming>, and these extensions:

=over

=item C<psgix.input.buffered>, C<psgix.output.buffered>

True: the front has the complete request body, and reads a response ahead of a slow client.

=item C<psgix.harakiri>

If the application has set C<psgix.harakiri.commit>, the worker leaves after the response and is
replaced.

=item C<psgix.cleanup>

Handlers in C<psgix.cleanup.handlers> run when the client has its response. See
L<Kirin::Worker::Cleanup>.

=item C<psgix.informational>

C<< $env->{'psgix.informational'}->(103, [Link => '</style.css>; rel=preload']) >> is sent to the
client at once, if it speaks HTTP/1.1.

=item C<psgix.io>

A socket to the client, only in requests for an upgrade (C<Upgrade>, HTTP/1.1, no body). The
application switches protocols in one of two ways. It writes the complete C<101> response to the
socket itself, continues in the new protocol, and then returns without a call of the responder (or
returns no response at all). Or it calls the responder with status 101, continues with the writer
that it gets, and reads from the socket.

The connection ends when the application returns or dies. A response that it returns after it has
written to the socket is not sent, and the log says so. Any other response is sent as usual. An
application that has returned no response and has not written to the socket either gets 500. The
socket leads to the front, so C<getpeername> does not return the client's address. The worker serves
no other request in this time.

=item C<psgix.logger>

Writes C<kirin: worker PID: LEVEL: MESSAGE> to the log.

=back

L<Kirin::Worker::Hooks> describes the code of an application that runs at the start and the end of a
worker.

=cut
