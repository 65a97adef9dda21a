package Kirin::DeathSignal;
use v5.16;
use warnings;

use POSIX ();

# The number of the system call prctl(2) by architecture. Perl has no function for it.
my %PRCTL = (x86_64 => 157, aarch64 => 167);
use constant PR_SET_PDEATHSIG => 1;

# Tells the kernel to send this process $signal when its parent dies. 0 removes the signal.
sub set {
    my $signal = shift;
    my $number = $PRCTL{ (POSIX::uname())[4] } or return;
    return 0 == syscall $number, PR_SET_PDEATHSIG, $signal, 0, 0, 0;
}

1;

__END__

=head1 NAME

Kirin::DeathSignal - ends a process when its parent dies

=head1 SYNOPSIS

    Kirin::DeathSignal::set(POSIX::SIGKILL());
    load_the_application();
    Kirin::DeathSignal::set(0);

=head1 DESCRIPTION

The app parent checks every second whether the front is still there. While it loads the application
it cannot check, and an application may take any time to load. If the number of the system call is
unknown, such a parent ends when it has loaded the application.

=cut
