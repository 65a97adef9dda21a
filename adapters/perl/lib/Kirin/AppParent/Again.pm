package Kirin::AppParent::Again;
use v5.16;
use warnings;

use Cwd ();
use File::Basename ();
use Kirin::Log;
use POSIX ();

# Records how this process was started, before the application can change any of it.
sub new {
    my ($class, @arguments) = @_;
    # Only "auto" needs this.
    for my $at (0 .. $#arguments) {
        splice @arguments, $at, 2 and last if $arguments[$at] eq '--preload';
    }
    my $mask = POSIX::SigSet->new;
    POSIX::sigprocmask(POSIX::SIG_BLOCK(), POSIX::SigSet->new, $mask);
    my $library = File::Basename::dirname(Cwd::abs_path(__FILE__));
    return bless {
        arguments   => \@arguments,
        directory   => Cwd::getcwd(),
        environment => {%ENV},
        include     => [File::Basename::dirname(File::Basename::dirname($library))],
        mask        => $mask,
        umask       => umask,
    }, $class;
}

# Restarts this process with exec(2), as a parent that does not load the application. @opened are
# the descriptors that the application has left open. Returns only after a failure, with the reason.
sub without_preloading {
    my ($self, $parent, @opened) = @_;
    %ENV = %{ $self->{environment} };
    umask $self->{umask};
    chdir $self->{directory} or return "$self->{directory}: $!\n";
    alarm 0;
    # An ignored signal stays ignored through exec(2).
    local $SIG{$_} = 'DEFAULT' for grep { ($SIG{$_} // '') eq 'IGNORE' } keys %SIG;
    POSIX::close($_) for @opened;
    # These have the values from the start.
    POSIX::dup2(fileno $parent->{listener}, 0) // return "STDIN: $!\n";
    POSIX::dup2(fileno $parent->{control}, 1) // return "STDOUT: $!\n";
    Kirin::Log::give_back();
    POSIX::sigprocmask(POSIX::SIG_SETMASK(), $self->{mask});
    no warnings 'exec';
    exec {$^X} $^X, (map { "-I$_" } @{ $self->{include} }), '-MKirin::AppParent', '-e',
        'exit Kirin::AppParent->main(@ARGV)',
        '--', '--preload', 'false', @{ $self->{arguments} };
    return "$^X: $!\n";
}

1;

__END__

=head1 NAME

Kirin::AppParent::Again - an app parent that starts again, without the application

=head1 SYNOPSIS

    my $again = Kirin::AppParent::Again->new(@ARGV);
    load_the_application();
    $again->without_preloading($parent, @descriptors);

=head1 DESCRIPTION

A loaded application cannot be unloaded, and its modules do not run a second time. If workers cannot
share what it has opened, the app parent starts again with exec(2). It keeps its process id, its
socket and its control channel. The workers then load the application.

=cut
