package Kirin::Descriptors;
use v5.16;
use warnings;

use Fcntl qw(O_ACCMODE O_APPEND O_RDONLY O_RDWR);
use POSIX ();
use Socket ();

# The start of an SQLite database.
use constant SQLITE => "SQLite format 3\0";

# Returns the open descriptors of this process: the target of each by its number. Returns nothing
# without /proc.
sub opened {
    opendir my $directory, '/proc/self/fd' or return {};
    my %opened;
    for my $number (grep { /\A[0-9]+\z/ } readdir $directory) {
        my $target = readlink "/proc/self/fd/$number" // next;
        $opened{$number} = $target;
    }
    # This is the directory itself.
    delete @opened{ grep { $opened{$_} =~ m{\A/proc/[0-9]+/fd\z} } keys %opened };
    return \%opened;
}

# Returns the numbers of the descriptors that were opened after $before was taken.
sub opened_since {
    my $before = shift;
    my $now = opened();
    return sort { $a <=> $b } grep { ($before->{$_} // '') ne $now->{$_} } keys %$now;
}

# Returns a line about each of those descriptors that processes cannot share after a fork, because
# one would read data for another.
sub not_to_be_shared {
    my $before = shift;
    my $now = opened();
    my @found;
    for my $number (opened_since($before)) {
        my $what = kind($number, $now) // next;
        push @found, "descriptor $number, $what";
    }
    return @found;
}

sub kind {
    my ($number, $opened) = @_;
    my $target = $opened->{$number} // return;
    return socket_kind($number) if $target =~ /\Asocket:/;
    my $flags = flags($number) // return;
    my $mode = $flags & O_ACCMODE;
    if ($target =~ /\Apipe:/) {
        # With both ends here the pipe leads to no other process. A file that is only written, such
        # as a log, may be shared.
        my $has_other_end =
            grep { $_ != $number && $opened->{$_} eq $target && (flags($_) // 0) & O_ACCMODE }
            keys %$opened;
        return $mode == O_RDONLY && !$has_other_end ? 'a pipe from another process' : undef;
    }
    return if !-f "/proc/self/fd/$number" || $target =~ / \(deleted\)\z/;
    return "the file $target, which is opened for reading and writing"
        if $mode == O_RDWR && !($flags & O_APPEND);
    return "the database $target" if $mode == O_RDONLY && is_sqlite($number);
    return;
}

# Returns the flags of open(2).
sub flags {
    my $number = shift;
    open my $info, '<', "/proc/self/fdinfo/$number" or return;
    local $/;
    my ($flags) = readline($info) =~ /^flags:\s*([0-7]+)/m or return;
    return oct $flags;
}

sub is_sqlite {
    my $number = shift;
    open my $file, '<:raw', "/proc/self/fd/$number" or return 0;
    sysread $file, my $begin, length SQLITE or return 0;
    return $begin eq SQLITE;
}

sub socket_kind {
    my $number = shift;
    # This is a copy, which may be closed.
    open my $socket, '+<&', $number or return 'a socket';
    my $own = getsockname $socket;
    my $peer = getpeername $socket;
    my $type = unpack 'i',
        getsockopt($socket, Socket::SOL_SOCKET(), Socket::SO_TYPE()) // return 'a socket';
    my $is_unix = defined $own && Socket::sockaddr_family($own) == Socket::AF_UNIX();
    # No peer can answer on it: syslog.
    return if $is_unix && $type == Socket::SOCK_DGRAM() && !length Socket::unpack_sockaddr_un($own);
    return 'a connection to ' . address($peer) if $peer;
    my $listens = unpack 'i',
        getsockopt($socket, Socket::SOL_SOCKET(), Socket::SO_ACCEPTCONN()) // pack 'i', 0;
    return ($listens ? 'a listening socket at ' : 'a socket at ') . address($own);
}

sub address {
    my $address = shift // return 'an unknown address';
    my $family = Socket::sockaddr_family($address);
    if ($family == Socket::AF_UNIX()) {
        my $path = Socket::unpack_sockaddr_un($address);
        return length $path ? "unix:$path" =~ s/[^ -~]/?/gr : 'a nameless unix socket';
    }
    my ($error, $host, $port) =
        Socket::getnameinfo($address, Socket::NI_NUMERICHOST() | Socket::NI_NUMERICSERV());
    return 'an unknown address' if $error;
    return $family == Socket::AF_INET6() ? "[$host]:$port" : "$host:$port";
}

1;

__END__

=head1 NAME

Kirin::Descriptors - finds the descriptors that an application has opened while it was loaded

=head1 SYNOPSIS

    my $before = Kirin::Descriptors::opened();
    load_the_application();
    warn "$_\n" for Kirin::Descriptors::not_to_be_shared($before);

=head1 DESCRIPTION

Forked processes have the same connections. One process may read what a database answers to another.
So an application must not open these before workers are forked: sockets, except those of syslog, on
which no data arrives; pipes from other processes; files that are open for reading and writing, as
databases are; SQLite databases that are only read.

Logs, which are open for writing, may be shared. So may files that are only read, but all processes
have one common position. A program that reads from such a file in its requests has to open it
there.

=cut
