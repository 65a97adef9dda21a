package Kirin::Worker::WriteWatch;
use v5.16;
use warnings;

use POSIX ();

# The numbers of epoll_create1(2), epoll_ctl(2) and epoll_pwait(2), and the layout of struct
# epoll_event, by architecture. Perl has no functions for them.
my %EPOLL = (
    x86_64  => [291, 233, 281, 'L Q'],
    aarch64 => [20, 21, 22, 'L x4 Q'],
);
use constant { EPOLL_CLOEXEC => 0x80000, EPOLL_CTL_ADD => 1, EPOLLOUT => 4, EPOLLET => 1 << 31 };

# ioctl(2) on a unix socket: the bytes that the other end has not read yet.
use constant SIOCOUTQ => 0x5411;

# Starts to watch $socket, of which the other end must have read everything. Returns nothing on an
# unknown architecture, or without a free descriptor.
sub new {
    my ($class, $socket) = @_;
    my $numbers = $EPOLL{ (POSIX::uname())[4] } // return;
    my ($create, $control, $wait, $layout) = @$numbers;
    my $epoll = syscall $create, EPOLL_CLOEXEC;
    return if $epoll < 0;
    my $self = bless { socket => $socket, epoll => $epoll, wait => $wait, layout => $layout },
        $class;
    my $event = pack $layout, EPOLLOUT | EPOLLET, 0;
    return if syscall($control, $epoll, EPOLL_CTL_ADD, fileno $socket, $event) != 0;
    # The first event says that the socket was ready when the watch began.
    $self->take_event;
    return $self;
}

# Returns whether anything has been written to the socket since the watch began.
sub has_written {
    my $self = shift;
    return 1 if $self->{is_written};
    my $unread = pack 'i', 0;
    ioctl $self->{socket}, SIOCOUTQ, $unread or return $self->{is_written} = 1;
    return $self->{is_written} = unpack('i', $unread) > 0 || $self->take_event;
}

# Returns whether the socket got room again, which happens when the other end has read something.
sub take_event {
    my $self = shift;
    my $event = pack $self->{layout}, 0, 0;
    return syscall($self->{wait}, $self->{epoll}, $event, 1, 0, 0, 8) != 0;
}

sub DESTROY { POSIX::close($_[0]{epoll}) }

1;

__END__

=head1 NAME

Kirin::Worker::WriteWatch - whether an application has written to its psgix.io

=head1 SYNOPSIS

    my $watch = Kirin::Worker::WriteWatch->new($socket);
    $app->($env);
    say 'the application speaks another protocol' if $watch && $watch->has_written;

=head1 DESCRIPTION

An application that has written C<101> to C<psgix.io> has switched protocols. Nothing that the
worker sends may follow then, because it would be data of the new protocol. The application may
write with any function of Perl or of a library, so only the kernel knows that it has.

The kernel counts the bytes of a unix socket that its other end has not read yet. When they are
read, it says that the socket has room again (EPOLLET of epoll(7)). If neither is the case, nothing
has been written.

=cut
