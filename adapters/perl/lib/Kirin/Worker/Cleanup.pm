package Kirin::Worker::Cleanup;
use v5.16;
use warnings;

use Kirin::Worker::Trace;

# Returns whether the application has handlers to run after the response.
sub is_wanted {
    my $handlers = $_[0]{'psgix.cleanup.handlers'};
    return ref $handlers eq 'ARRAY' && @$handlers;
}

# Runs the handlers, in their order. If one dies, the others still run.
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

Kirin::Worker::Cleanup - runs code of an application after its response

=head1 SYNOPSIS

    # in an application
    push @{ $env->{'psgix.cleanup.handlers'} }, sub { my $env = shift; send_mail() };

    # in the worker, when the response has left
    Kirin::Worker::Cleanup::run($env) if Kirin::Worker::Cleanup::is_wanted($env);

=head1 DESCRIPTION

The client has the complete response before the first handler runs. No request waits for a worker
that is cleaning up: the response head reports the cleanup to the front (C<Kirin-Cleanup>), and a
line end reports its end. If handlers are registered after the head has been sent, the head cannot
announce them. Then the worker closes its connection before it runs them, and accepts a new one.

All handlers of a request together may take as long as a request may. A handler may add others.

=cut
