package Kirin::Worker::Cleanup;
use v5.16;
use warnings;

use Kirin::Worker::Trace;

# Whether the application has left something to do for after the response.
sub is_wanted {
    my $handlers = $_[0]{'psgix.cleanup.handlers'};
    return ref $handlers eq 'ARRAY' && @$handlers;
}

# Runs the handlers, in their order. One that dies does not keep the others from running.
sub run {
    my $env = shift;
    while (is_wanted($env)) {
        my $handler = shift @{ $env->{'psgix.cleanup.handlers'} };
        eval { $handler->($env); 1 } or Kirin::Worker::Trace::log_failure($env, $@);
    }
}

1;

__END__

=head1 NAME

Kirin::Worker::Cleanup - what an application does after its response

=head1 SYNOPSIS

    # in an application
    push @{ $env->{'psgix.cleanup.handlers'} }, sub { my $env = shift; send_mail() };

    # in the worker, when the response has left
    Kirin::Worker::Cleanup::run($env) if Kirin::Worker::Cleanup::is_wanted($env);

=head1 DESCRIPTION

The client has the whole response before the first handler runs, and no request waits for a worker that is cleaning up:
the response head tells the front (C<Kirin-Cleanup>), and a line end tells it when that is over. Handlers that are
registered only when the head has left already cannot be announced; then the worker closes its connection before it
runs them and takes a new one.

All handlers of a request together may take as long as a request may. A handler may add others.

=cut
