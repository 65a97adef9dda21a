package Kirin::Worker::RingLoop;
use v5.16;
use warnings;

use Kirin::Worker::Cleanup;
use Kirin::Worker::Input;
use Kirin::Worker::Response;
use Kirin::Worker::Signals;
use Kirin::Worker::Trace;
use Kirin::Worker::Writer;
use Scalar::Util qw(weaken);
use Socket qw(MSG_NOSIGNAL);

# Serves the requests that come through a ring, until the worker must end. Returns what
# Kirin::Worker::serve returns: true if the worker accepts another connection.
sub serve {
    my ($worker, $ring, $socket) = @_;
    my $app = $worker->{app};
    my ($env, $is_answered, $is_cleaning_up);
    local $worker->{env} = \$env;
    local $Kirin::Log::Request = \$env;
    # The ring keeps the code of psgix.informational. So that code must not keep the ring.
    weaken(my $kept_ring = $ring);
    $ring->set_always(
        [
            @{ $worker->{always} },
            # What comes before the final response takes the connection, and so does all that
            # follows. After the final response, nobody reads the connection until it has another
            # request, and then these bytes would be a part of its response.
            'psgix.informational' => sub {
                $kept_ring && !$is_cleaning_up && $kept_ring->over_connection
                    or die "An informational response can only precede the final one\n";
                Kirin::Worker::Response::send_informational($socket, @_);
            },
        ]
    );
    my $before_stream = sub { take_connection($worker, $ring, $env) };
    my $deliver = sub {
        my $cleans_up = Kirin::Worker::Cleanup::is_wanted($env) ? 1 : 0;
        return if $is_answered = $ring->answer_bytes($_[0], $cleans_up);
        $before_stream->();
        Kirin::Worker::Writer::write_all($socket, $_[0]);
    };
    my %by_ring = (deliver => $deliver, before_stream => $before_stream);

    until ($worker->{stopping}) {
        my $request = $ring->take // next;
        if (!ref $request) {
            return 0 if !$request;
            my $result = $worker->serve($socket, 1);
            next if $result eq $worker->NEXT;
            return $result;
        }
        $env = $request;
        # The keys of Kirin::Store are those of the site.
        $Kirin::Store::Site = $env->{KIRIN_SITE};
        if ($env->{CONTENT_LENGTH}) {
            $env->{'psgi.input'} = Kirin::Worker::Input::of_bytes($ring->body);
            # The values that the front has parsed are valid as long as this is the input.
            $env->{'kirin.form.input'} = $env->{'psgi.input'} if exists $env->{'kirin.form'};
        }
        else {
            $env->{'psgi.input'} =
                defined fileno $worker->{no_input} ? $worker->{no_input} : $worker->open_no_input;
        }

        my $leaving = $worker->{requests_left} && --$worker->{requests_left} < 1;
        my $stream;
        $is_answered = 0;
        $ring->begin;
        my $output = eval {
            my $response = $app->($env);
            Kirin::Worker::Signals::restore();
            $leaving ||= $worker->{stopping} || $env->{'psgix.harakiri.commit'};
            my $cleans_up = Kirin::Worker::Cleanup::is_wanted($env);
            # Most responses are plain.
            $is_answered =
                  !$cleans_up
                && $env->{REQUEST_METHOD} ne 'HEAD'
                && $ring->answer($response, $leaving);
            $is_answered ? ''
                : ref $response eq 'ARRAY' && ref $response->[2] eq 'ARRAY'
                ? Kirin::Worker::Response::whole($response, $env, $leaving)
                : ($stream = $worker->stream($socket, $env, $leaving, %by_ring))->send($response);
        };
        if (!defined $output) {
            # A process that the application has forked must not answer in the worker's place.
            exit 1 if $$ != $worker->{pid} && Kirin::Worker::Trace::log_failure($env, $@);
            Kirin::Worker::Signals::restore();
            Kirin::Worker::Trace::log_failure($env, $@);
            return $worker->hang_up($socket, $env, $leaving) if $stream && $stream->has_begun;
            $output = Kirin::Worker::Response::internal_server_error($env, $leaving);
        }
        if ($output ne '' && !eval { $deliver->($output); 1 }) {
            return $worker->hang_up($socket, $env, $leaving);
        }
        return $worker->hang_up($socket, $env, $leaving) if $stream && $stream->has_switched;
        if (Kirin::Worker::Cleanup::is_wanted($env)) {
            return $worker->hang_up($socket, $env, $leaving)
                if !$is_answered && $stream && !$stream->cleanup_is_announced;
            $is_cleaning_up = 1;
            Kirin::Worker::Cleanup::run($env);
            $is_cleaning_up = 0;
            $leaving ||= $worker->{stopping};
            # The front counts the time until this reports the end, or until the worker leaves.
            if ($is_answered) {
                $ring->cleaned_up;
            }
            elsif (!$leaving && !$env->{'psgix.harakiri.commit'}) {
                send $socket, "\n", MSG_NOSIGNAL;
            }
        }
        return 0 if $leaving || $env->{'psgix.harakiri.commit'};
        # Objects of the application in the environment must go before the next request comes.
        undef $request;
        undef $env;
    }
    return 0;
}

# Gets the connection for the answer. A process that the application has forked must not answer in
# the worker's place.
sub take_connection {
    my ($worker, $ring, $env) = @_;
    return if $ring->over_connection;
    die "The request has its response already\n" if $$ == $worker->{pid};
    Kirin::Worker::Trace::log_failure($env, "A forked process has returned a response\n");
    exit 1;
}

1;

__END__

=head1 NAME

Kirin::Worker::RingLoop - serves requests that come through the ring

=head1 SYNOPSIS

    my $ring = Kirin::Ring->attach(fileno $socket)
        and Kirin::Worker::RingLoop::serve($worker, $ring, $socket);

=head1 DESCRIPTION

This is C<Kirin::Worker::serve> for a worker that is attached to a ring. A request that does not fit
into the ring comes over the socket, and C<Kirin::Worker::serve> serves it. A response that is not
complete when it begins, or that does not fit, goes over the socket too.

=cut
