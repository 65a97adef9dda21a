package Kirin::Log;
use v5.16;
use warnings;

use Errno qw(EAGAIN EINTR);
use Fcntl qw(F_DUPFD F_GETFD F_SETFD FD_CLOEXEC O_APPEND O_NOCTTY O_NONBLOCK O_WRONLY);
use POSIX ();
use Time::HiRes ();

# Standard streams have the descriptors below this one.
use constant FIRST_DESCRIPTOR => 3;

# fcntl(2) F_SETPIPE_SZ, and the largest pipe that every user may have.
use constant { F_SETPIPE_SZ => 1031, PIPE_BYTES => 1024 * 1024 };

my $log;

# A reference to the environment of the request that is being served, if there is one.
our $Request;

# Keeps the present STDERR for the messages of Kirin's own modules. The application may close,
# reopen or tie its STDERR.
sub keep {
    close $log if $log;
    undef $log;
    # This uses the descriptor, because the handle may be anything by now.
    open my $copy, '>&', 2 or return;
    $log = above_standard($copy);
    return;
}

# Restores the descriptor of STDERR.
sub give_back { POSIX::dup2(fileno $log, 2) if $log }

# Makes writes to STDERR return at once if it is a pipe that nobody reads, or a stopped terminal.
# The file is opened again, because other programs share the open file and must not find it
# non-blocking. A pipe of another user cannot be opened, so it stays unchanged.
sub never_wait {
    return if !-p STDERR && !POSIX::isatty(2);
    sysopen my $own, '/proc/self/fd/2', O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY or return;
    # A larger pipe has more room before lines are lost that come faster than they are read.
    fcntl $own, F_SETPIPE_SZ, PIPE_BYTES if -p $own;
    POSIX::dup2(fileno $own, 2);
    return;
}

# Writes one entry, with the time, and the id of the request that is being served. It never waits
# for long and never dies. It uses no signal handler, separator or tied handle of the application.
sub line {
    my $text = join '', @_;
    return if !$log;
    my $env = $Request && $$Request;
    my $id = $env && $env->{HTTP_X_REQUEST_ID};
    # What follows the first line is the stack.
    $text =~ s/(\n|\z)/ request_id=$id$1/ if defined $id;
    $text = now() . " $text";
    local ($@, $!);
    local $SIG{PIPE} = 'IGNORE';
    utf8::encode($text) if utf8::is_utf8($text);
    # A message may have the text of a visitor: it must not control a terminal, and no line in it
    # may look like one of Kirin.
    $text =~ tr/\x00-\x08\x0b-\x1f\x7f/?/;
    $text =~ s/\n(?=[^\n\t ])/\n  /g;
    $text .= "\n" if $text !~ /\n\z/;
    my $at = 0;
    while ($at < length $text) {
        my $count = syswrite $log, $text, length($text) - $at, $at;
        next if !defined $count && $! == EINTR;
        # The disk is full, or nobody reads. There is no other place to report that.
        last if !$count;
        $at += $count;
    }
    return;
}

# Returns the time as Kirin's own lines have it.
sub now {
    my ($seconds, $microseconds) = Time::HiRes::gettimeofday();
    my ($second, $minute, $hour, $day, $month, $year) = gmtime $seconds;
    return sprintf '%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', $year + 1900, $month + 1, $day, $hour,
        $minute, $second, $microseconds;
}

# Returns the handle, or a copy of it that is not a standard stream. The output of programs that the
# application starts would go to a standard stream.
sub above_standard {
    my $handle = shift;
    return $handle if fileno $handle >= FIRST_DESCRIPTOR;
    my $number = fcntl $handle, F_DUPFD, FIRST_DESCRIPTOR or return $handle;
    open my $copy, '+<&=', $number or return $handle;
    fcntl $copy, F_SETFD, FD_CLOEXEC;
    return $copy;
}

# Opens closed standard descriptors. Otherwise the next file or connection would get their numbers,
# and with them the output to STDERR.
sub occupy_closed_streams {
    for my $number (0 .. FIRST_DESCRIPTOR - 1) {
        my $copy = POSIX::dup($number);
        if (defined $copy) {
            POSIX::close($copy);
            next;
        }
        # The lowest free number is this one.
        my $null = POSIX::open('/dev/null', POSIX::O_RDWR()) // return;
        POSIX::dup2(fileno $log, $number) if $number > 0 && $log;
        POSIX::close($null) if $null != $number;
    }
    return;
}

1;

__END__

=head1 NAME

Kirin::Log - the log of Kirin's own modules, whatever the application does to STDERR

=head1 SYNOPSIS

    Kirin::Log::keep();                             # before the application is loaded
    Kirin::Log::line("kirin: worker $$: $message");

=head1 DESCRIPTION

C<line> writes to the file that was STDERR when C<keep> was called. A full disk, a closed terminal
or a missing reader loses the line, and nothing else happens. The line begins with the time. While a
worker serves a request, C<$Request> is a reference to the variable that has the environment, and
the line names the id of the request. C<never_wait> does the same for the application's own output
to STDERR.

=cut
