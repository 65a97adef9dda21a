package Kirin::AppParent::Again;
use v5.16;
use warnings;

use Cwd ();
use File::Basename ();
use Kirin::Log;
use POSIX ();

# How this process was started, taken down before the application can change any of it.
sub new {
    my ($class, @arguments) = @_;
    # Only "auto" comes here.
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

# Starts this process again with exec(2), as a parent that does not load the application. @opened are the descriptors that the
# application has left open. Returns only if it fails: why.
sub without_preloading {
    my ($self, $parent, @opened) = @_;
    %ENV = %{ $self->{environment} };
    umask $self->{umask};
    chdir $self->{directory} or return "$self->{directory}: $!\n";
    alarm 0;
    # What is ignored stays ignored through exec(2).
    local $SIG{$_} = 'DEFAULT' for grep { ($SIG{$_} // '') eq 'IGNORE' } keys %SIG;
    POSIX::close($_) for @opened;
    # As they were at the start.
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

Kirin::AppParent::Again - an app parent that starts once more, without the application

=head1 SYNOPSIS

    my $again = Kirin::AppParent::Again->new(@ARGV);
    load_the_application();
    $again->without_preloading($parent, @descriptors);

=head1 DESCRIPTION

An application that has been loaded cannot be unloaded, and its modules are not run a second time. If workers turn out not to be
able to share what it has opened, the app parent starts again with exec(2): it keeps its process id, its socket and its control
channel, and leaves the loading to the workers.

=cut
