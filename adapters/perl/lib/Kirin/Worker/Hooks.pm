package Kirin::Worker::Hooks;
use v5.16;
use warnings;

use Exporter qw(import);
use Kirin::Log;

our @EXPORT_OK = qw(after_fork before_exit);

my (@after_fork, @before_exit);

sub after_fork { push @after_fork, @_; return }
sub before_exit { push @before_exit, @_; return }

# Dies with the first hook that does: a worker without its connection to a database, say, must not serve.
sub run_after_fork {
    for my $hook (@after_fork) { $hook->() }
    return;
}

# Runs all; what one dies with goes to the log.
sub run_before_exit {
    for my $hook (@before_exit) {
        eval { $hook->(); 1 } or Kirin::Log::line("kirin: worker $$: before_exit: $@");
    }
    return;
}

1;

__END__

=head1 NAME

Kirin::Worker::Hooks - what an application does at the begin and the end of a worker

=head1 SYNOPSIS

    # in app.psgi, or in a module that it loads
    use Kirin::Worker::Hooks qw(after_fork before_exit);

    after_fork(sub { $database = connect_to_database() });
    before_exit(sub { $statistics->flush });

=head1 DESCRIPTION

An application is loaded once, before its workers are forked from the process that has loaded it. What must not be
shared between processes, such as a database connection, belongs into C<after_fork>. Hooks run in the order in which they
were given.

C<after_fork> hooks run in each new worker before it takes a request. If one dies, so does the worker, the log has the
reason, and another is forked after a pause that grows.

C<before_exit> hooks run when a worker leaves in order: after TERM, after its number of requests, at its age, for a new
generation. They do not when it is killed or when the program ends at once (INT). Nobody limits how long they take before
the whole program stops, and the worker's place is free only then.

Under another server the functions can be called, and the hooks are not.

=cut
