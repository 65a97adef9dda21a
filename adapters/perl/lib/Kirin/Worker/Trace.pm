package Kirin::Worker::Trace;
use v5.16;
use warnings;

use Carp ();
use Kirin::Log;
use Scalar::Util qw(blessed);

my $stack;

# The packages that call applications.
my %is_worker = map { $_ => 1 } qw(Kirin::Worker Kirin::Worker::RingLoop);

# The worker's $SIG{__DIE__}. It costs nothing until an exception is thrown, and little if the
# application catches it itself.
sub remember {
    undef $stack;
    for (my $level = 1; my ($package, $sub, $is_require) = (caller $level)[0, 3, 7]; $level++) {
        next if $sub ne '(eval)' || $is_require;
        # The innermost eval will catch it.
        $stack = Carp::longmess('') if $is_worker{$package};
        return;
    }
}

# Logs why a request has failed.
sub log_failure {
    my ($env, $error) = @_;
    my $trace = $stack // '';
    undef $stack;
    return 1 if blessed $error && $error->isa('Kirin::Worker::Gone');
    # The exception may be an object that cannot even be converted to text.
    $error = eval { "$error" } // ref $error;
    $error =~ s/\n\z//;
    # The first line has the caller of remember, which is where the code died.
    $trace =~ s/\A\s*at (?:.*?) line [0-9]+\.?\n//;
    print_message($env, $error, $trace);
    return 1;
}

# Logs where a request is that takes too long. A signal handler calls this, so the first line is the
# interrupted code.
sub log_overdue {
    my $env = shift;
    my $trace = Carp::longmess('');
    # The frame of the handler itself has that place.
    $trace =~ s/\A\s*at .*? line [0-9]+\.?\n\s*Kirin::Worker::__ANON__\(.*?\) called (?=at )/\t/;
    # Perl calls handlers inside its own eval.
    $trace =~ s/\A(\t(at .*)\n)\teval \{\.\.\.\} called \2\n/$1/;
    print_message($env, 'took too long', $trace);
}

sub print_message {
    my ($env, $error, $trace) = @_;
    # The frames below the worker's eval are the same for every request.
    $trace =~ s{^\s*eval \{\.\.\.\} called at \S*Kirin/Worker(?:/RingLoop)?\.pm .*}{}ms;
    $trace = "\n" . $trace if $trace ne '';
    my ($method, $uri) = map { $_ // '' } @$env{qw(REQUEST_METHOD REQUEST_URI)};
    Kirin::Log::line("kirin: worker $$: $method $uri: $error$trace");
}

1;

__END__

=head1 NAME

Kirin::Worker::Trace - where an application died or hangs

=head1 SYNOPSIS

    local $SIG{__DIE__} = \&Kirin::Worker::Trace::remember;
    eval { $app->($env); 1 } or Kirin::Worker::Trace::log_failure($env, $@);

=head1 DESCRIPTION

When C<eval> has caught an exception, its stack is gone. C<remember> keeps the stack of exceptions
that only the worker will catch. C<log_overdue> logs the stack of the code that a signal has
interrupted.

=cut
