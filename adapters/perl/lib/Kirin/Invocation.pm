package Kirin::Invocation;
use v5.16;
use warnings;

use Cwd ();
use Kirin::Inherited;

# Flag of a process that has been forked and has not called exec(2) since (PF_FORKNOEXEC;
# proc_pid_stat(5), field 9).
use constant FORKED => 0x40;

# This runs as early as possible. The kernel's own copy is already gone: Plack::Util has assigned to
# $0 while it loaded the application, and Perl writes $0 over the arguments and the environment.
my @COMMAND = (interpreter(), $0, @ARGV);
my %ENVIRONMENT = %ENV;
my $DIRECTORY = Cwd::getcwd();

# These are the perl options that variables show. No variable shows -M and -d.
sub interpreter {
    my @options = map { "-I$_" } grep { !ref } @INC;
    push @options, '-T' if ${^TAINT} > 0;
    push @options, '-C' . ${^UNICODE} if ${^UNICODE};
    return ($^X, @options);
}

# Returns how this process was started. Returns nothing if the same command would start something
# else:
#
# - The process was forked, as those of Plack::Loader::Restarter and of tests. The command started
#   another process, which may do anything before it comes here.
# - The program is in no file, or has given itself another name.
sub of_this_process {
    my $class = shift;
    open my $file, '<', '/proc/self/stat' or return;
    # The name in parentheses may contain any character.
    my $flags = (split ' ', readline($file) =~ s/\A.*\)//sr)[6];
    return if $flags & FORKED || !-f $0;
    my $not_for_it = Kirin::Inherited::variables();
    my @environment =
        map { "$_=$ENVIRONMENT{$_}" } grep { !$not_for_it->{$_} && !/=/ } sort keys %ENVIRONMENT;
    return bless { directory => $DIRECTORY, command => \@COMMAND, environment => \@environment },
        $class;
}

# Formats the values for kirin: the directory, the number of words of the command, these words, and
# the environment, each followed by NUL.
sub text {
    my $self = shift;
    my @command = @{ $self->{command} };
    return join '', map { "$_\0" } $self->{directory}, scalar @command, @command,
        @{ $self->{environment} };
}

1;

__END__

=head1 NAME

Kirin::Invocation - how a process was started, so that kirin can start it again

=head1 DESCRIPTION

This module is for L<Kirin::Front>. After that has become F<kirin>, HUP asks it for new code. Kirin
then runs the command again with C<KIRIN_APP_PARENT> set, and C<run> becomes the parent of the new
workers.

Command, directory and environment are those at the time when this module is loaded. plackup loads
it after the application. So changes of the application to C<%ENV> are there from the start when it
is loaded again. With C<plackup -MPlack::Handler::Kirin -s Kirin> the module is loaded before the
application.

=cut
