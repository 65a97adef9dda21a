package Kirin::Worker::Hooks;
use v5.16;
use warnings;

use Exporter qw(import);
use Kirin::Log;

our @EXPORT_OK = qw(after_fork before_exit);

my (@after_fork, @before_exit);

sub after_fork { push @after_fork, @_; return }
sub before_exit { push @before_exit, @_; return }

# Dies with the first hook that dies. For example, a worker without its database connection must not
# serve.
sub run_after_fork {
    for my $hook (@after_fork) { $hook->() }
    return;
}

# Runs all hooks. If one dies, the log has the reason.
sub run_before_exit {
    for my $hook (@before_exit) {
        eval { $hook->(); 1 } or Kirin::Log::line("kirin: worker $$: before_exit: $@");
    }
    return;
}

1;

__END__

=head1 NAME

Kirin::Worker::Hooks - code of an application at the start and the end of a worker

=head1 SYNOPSIS

    # in app.psgi, or in a module that it loads
    use Kirin::Worker::Hooks qw(after_fork before_exit);

    after_fork(sub { $database = connect_to_database() });
    before_exit(sub { $statistics->flush });

=head1 DESCRIPTION

An application is loaded once, before its workers are forked from the process that has loaded it.
Resources that processes must not share, such as a database connection, belong into C<after_fork>.
Hooks run in the order in which they were registered.

C<after_fork> hooks run in each new worker before it accepts a request. If one dies, the worker dies
too, and the log has the reason. Another worker is forked after a growing pause.

C<before_exit> hooks run when a worker leaves normally: after TERM, after its number of requests, at
its age, for a new generation. They do not run when it is killed or when the program ends at once
(INT). Their time has no limit until the complete program stops, and the worker's place is free only
after them.

Under another server the functions can be called, but the hooks do not run.

=cut
