package Kirin::Worker::Signals;
use v5.16;
use warnings;

use POSIX ();

my %handler;

# Handles these signals with this code from now on.
sub install {
    my %new = @_;
    @handler{ keys %new } = values %new;
    $SIG{$_} = $new{$_} for keys %new;
    POSIX::sigprocmask(POSIX::SIG_UNBLOCK(), set_of(keys %new));
    guard_against_safe();
    return;
}

# Restores the handlers that the application has replaced. It runs after each request, so it only
# compares as long as nothing has changed. Reading a handler that is code takes no system call.
sub restore {
    no warnings 'uninitialized';
    return
           if $SIG{TERM} == $handler{TERM}
        && $SIG{QUIT} == $handler{QUIT}
        && $SIG{USR2} == $handler{USR2}
        && $SIG{PIPE} == $handler{PIPE};
    $SIG{$_} = $handler{$_} for keys %handler;
    guard_against_safe();
    return;
}

# Perl forgets all signal handlers when code runs in a compartment of Safe, because it takes that
# code's %SIG for the only one. A signal at that time would end the process ("no signal handler
# set"). So signals wait until the handlers are restored.
sub guard_against_safe {
    state $guarded;
    return if $guarded || !defined &Opcode::_safe_call_sv;
    $guarded = \&Opcode::_safe_call_sv;
    my $ours = set_of(keys %handler);
    no warnings 'redefine';
    *Opcode::_safe_call_sv = sub ($$$) {
        POSIX::sigprocmask(POSIX::SIG_BLOCK(), $ours, my $before = POSIX::SigSet->new);
        my $end = Kirin::Worker::Signals::AtEnd->new(
            sub {
                $SIG{$_} = $handler{$_} for keys %handler;
                POSIX::sigprocmask(POSIX::SIG_SETMASK(), $before);
            }
        );
        return &$guarded;
    };
    return;
}

sub set_of {
    return POSIX::SigSet->new(map { POSIX->can("SIG$_")->() } @_);
}

package Kirin::Worker::Signals::AtEnd {
    sub new { my ($class, $code) = @_; return bless { code => $code }, $class }
    sub DESTROY { $_[0]{code}->() }
}

1;

__END__

=head1 NAME

Kirin::Worker::Signals - a worker's signal handlers, which survive changes of %SIG by the
application

=head1 SYNOPSIS

    Kirin::Worker::Signals::install(TERM => sub { $stopping = 1 });
    my $response = $app->($env);
    Kirin::Worker::Signals::restore();

=head1 DESCRIPTION

An application may use any signal within a request, as with C<local $SIG{PIPE}>. Its handlers for
TERM, QUIT, USR2 and PIPE do not stay after the request. Without the worker's own handlers, the
worker would end in the middle of a later request.

=cut
