package Kirin::Invocation;
use v5.16;
use warnings;

use Cwd ();
use Kirin::Inherited;

# Flag of a process that has been forked and has not called exec(2) since (PF_FORKNOEXEC; proc_pid_stat(5), field 9).
use constant FORKED => 0x40;

# As early as can be. The kernel's own copy is gone by now: Plack::Util has assigned to $0 while it loaded the application, and
# Perl writes that over the arguments and the environment.
my @COMMAND = (interpreter(), $0, @ARGV);
my %ENVIRONMENT = %ENV;
my $DIRECTORY = Cwd::getcwd();

# What is left of perl's own options in variables; -M and -d are in none.
sub interpreter {
    my @options = map { "-I$_" } grep { !ref } @INC;
    push @options, '-T' if ${^TAINT} > 0;
    push @options, '-C' . ${^UNICODE} if ${^UNICODE};
    return ($^X, @options);
}

# How this process was started, or nothing if starting that again would lead to something else:
#
# - In a process that was forked, like those of Plack::Loader::Restarter and of tests: another one was started with that
#   command, and it may do anything before it comes here.
# - When the program is in no file, or has given itself another name.
sub of_this_process {
    my $class = shift;
    open my $file, '<', '/proc/self/stat' or return;
    # The name in parentheses may hold anything.
    my $flags = (split ' ', readline($file) =~ s/\A.*\)//sr)[6];
    return if $flags & FORKED || !-f $0;
    my $not_for_it = Kirin::Inherited::variables();
    my @environment =
        map { "$_=$ENVIRONMENT{$_}" } grep { !$not_for_it->{$_} && !/=/ } sort keys %ENVIRONMENT;
    return bless { directory => $DIRECTORY, command => \@COMMAND, environment => \@environment },
        $class;
}

# For kirin: the directory, the number of words of the command, these, and the environment, each followed by NUL.
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

For L<Kirin::Front>, which is asked for new code by HUP after it has become F<kirin>: the command is run again, with
C<KIRIN_APP_PARENT> set, upon which C<run> becomes the parent of the new workers.

Command, directory and environment are those at the moment in which this module is loaded. plackup does that after the
application, so that what the application has done to C<%ENV> is there from the beginning when it is loaded anew; with
C<plackup -MPlack::Handler::Kirin -s Kirin> it is done before.

=cut
