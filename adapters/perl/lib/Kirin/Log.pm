package Kirin::Log;
use v5.16;
use warnings;

use Errno qw(EAGAIN EINTR);
use Fcntl qw(F_DUPFD F_GETFD F_SETFD FD_CLOEXEC O_APPEND O_NOCTTY O_NONBLOCK O_WRONLY);
use POSIX ();

# Standard streams have the descriptors below this one.
use constant FIRST_DESCRIPTOR => 3;

# fcntl(2) F_SETPIPE_SZ, and the largest pipe that every user may have.
use constant { F_SETPIPE_SZ => 1031, PIPE_BYTES => 1024 * 1024 };

my $log;

# Keeps the present STDERR for what Kirin itself has to say. The application may close, reopen or tie its own.
sub keep {
    close $log if $log;
    undef $log;
    # The descriptor, not the handle, which may be anything by now.
    open my $copy, '>&', 2 or return;
    $log = above_standard($copy);
    return;
}

# Makes the descriptor of STDERR what it was.
sub give_back { POSIX::dup2(fileno $log, 2) if $log }

# Makes STDERR return at once when it is a pipe that nobody reads, or a terminal that is stopped. The file is opened again:
# other programs have the same open file, and must not find that it does not block any more. A pipe of another user cannot be
# opened; it stays as it is.
sub never_wait {
    return if !-p STDERR && !POSIX::isatty(2);
    sysopen my $own, '/proc/self/fd/2', O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY or return;
    # Lines that come faster than they are read have more room before they are lost.
    fcntl $own, F_SETPIPE_SZ, PIPE_BYTES if -p $own;
    POSIX::dup2(fileno $own, 2);
    return;
}

# Writes one entry. Never waits for long, never dies, and nobody's signal handler, separator or tied handle takes part in it.
sub line {
    my $text = join '', @_;
    return if !$log;
    local ($@, $!);
    local $SIG{PIPE} = 'IGNORE';
    utf8::encode($text) if utf8::is_utf8($text);
    $text .= "\n" if $text !~ /\n\z/;
    my $at = 0;
    while ($at < length $text) {
        my $count = syswrite $log, $text, length($text) - $at, $at;
        next if !defined $count && $! == EINTR;
        # The disk is full, or nobody reads: there is nowhere to say it.
        last if !$count;
        $at += $count;
    }
    return;
}

# The handle, or a copy of it that is no standard stream: what programs print that the application starts would go there.
sub above_standard {
    my $handle = shift;
    return $handle if fileno $handle >= FIRST_DESCRIPTOR;
    my $number = fcntl $handle, F_DUPFD, FIRST_DESCRIPTOR or return $handle;
    open my $copy, '+<&=', $number or return $handle;
    fcntl $copy, F_SETFD, FD_CLOEXEC;
    return $copy;
}

# Gives closed standard descriptors something to lead to. Otherwise the next file or connection would get their numbers, and
# with them what somebody prints to STDERR.
sub occupy_closed_streams {
    for my $number (0 .. FIRST_DESCRIPTOR - 1) {
        my $copy = POSIX::dup($number);
        if (defined $copy) {
            POSIX::close($copy);
            next;
        }
        # The lowest number that is free: this one.
        my $null = POSIX::open('/dev/null', POSIX::O_RDWR()) // return;
        POSIX::dup2(fileno $log, $number) if $number > 0 && $log;
        POSIX::close($null) if $null != $number;
    }
    return;
}

1;

__END__

=head1 NAME

Kirin::Log - what Kirin's own modules have to say, whatever the application does to STDERR

=head1 SYNOPSIS

    Kirin::Log::keep();                             # before the application is loaded
    Kirin::Log::line("kirin: worker $$: $message");

=head1 DESCRIPTION

C<line> writes to the file that was STDERR when C<keep> was called. A full disk, a closed terminal or a reader that has gone
costs the line, and nothing else. C<never_wait> does the same for what the application itself prints to STDERR.

=cut
