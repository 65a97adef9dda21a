package Kirin::DeathSignal;
use v5.16;
use warnings;

use POSIX ();

# prctl(2), which Perl has no function for; its number by architecture.
my %PRCTL = (x86_64 => 157, aarch64 => 167);
use constant PR_SET_PDEATHSIG => 1;

# Has the kernel send this process $signal when its parent dies; 0 for none again.
sub set {
    my $signal = shift;
    my $number = $PRCTL{ (POSIX::uname())[4] } or return;
    return 0 == syscall $number, PR_SET_PDEATHSIG, $signal, 0, 0, 0;
}

1;

__END__

=head1 NAME

Kirin::DeathSignal - a process that does not outlive its parent

=head1 SYNOPSIS

    Kirin::DeathSignal::set(POSIX::SIGKILL());
    load_the_application();
    Kirin::DeathSignal::set(0);

=head1 DESCRIPTION

The app parent looks every second whether the front is still there. While it loads the application it cannot look, and an
application may take as long as it likes to load. Where the system call is not known, such a parent ends when it has loaded.

=cut
