package Kirin::Inherited;
use v5.16;
use warnings;

use Cwd ();
use Fcntl ();
use POSIX ();
use Socket ();

# Kirin names sockets in the first three variables: those that listen, those to the program before,
# and those of UDP. The others belong to Server::Starter and systemd.
use constant OWN         => 'KIRIN_LISTENERS';
use constant PREDECESSOR => 'KIRIN_PREDECESSOR';
use constant DATAGRAMS   => 'KIRIN_DATAGRAMS';
use constant STARTER     => 'SERVER_STARTER_PORT';

# systemd's descriptors start here (sd_listen_fds(3)).
use constant FIRST => 3;

# Variables for the program in front, and not for an application behind it.
my @VARIABLES = (
    OWN, PREDECESSOR, DATAGRAMS, STARTER,
    qw(LISTEN_FDS LISTEN_PID LISTEN_FDNAMES NOTIFY_SOCKET)
);

sub variables {
    return { map { $_ => 1 } @VARIABLES };
}

# Returns the sockets that this process was started with.
sub from_environment {
    my $class = shift;
    for my $variable (OWN, STARTER) {
        my $value = $ENV{$variable} // '';
        next if $value eq '';
        my @numbers =
            map { /=([0-9]{1,6})\z/ ? $1 : die "$variable=$value is not understood\n" } split /;/,
            $value;
        return $class->new($variable, map { open_number($variable, $_) } @numbers);
    }
    return $class->new('') if ($ENV{LISTEN_PID} // '') ne $$;
    my $count = ($ENV{LISTEN_FDS} // '') =~ /\A([0-9]{1,4})\z/ ? $1 : 0;
    return $class->new(
        'LISTEN_FDS',
        map { open_number('LISTEN_FDS', $_) } FIRST .. FIRST + $count - 1
    );
}

# Returns sockets that this process has opened itself.
sub from_handles {
    my ($class, @handles) = @_;
    return bless { %{ $class->new('listen_sock', @handles) }, named_by_us => 1 }, $class;
}

sub new {
    my ($class, $origin, @handles) = @_;
    my @sockets = map { { handle => $_, address => address_of($origin, $_) } } @handles;
    return bless { sockets => \@sockets }, $class;
}

# The handles are kept. Perl closes a descriptor together with its last handle, and another file may
# have its number then.
my %HANDLE;

sub open_number {
    my ($variable, $number) = @_;
    die "$variable: descriptor $number is a standard stream, which Kirin uses itself\n"
        if $number < FIRST;
    return $HANDLE{$number} if $HANDLE{$number};
    open my $handle, '+<&=', $number or die "$variable: descriptor $number: $!\n";
    return $HANDLE{$number} = $handle;
}

# Formats an address as Kirin writes it.
sub address_of {
    my ($origin, $handle) = @_;
    my $listens = eval { getsockopt $handle, Socket::SOL_SOCKET(), Socket::SO_ACCEPTCONN() };
    $listens && unpack 'i', $listens or die "$origin: not a listening socket\n";
    my $name = getsockname $handle or die "$origin: $!\n";
    my $family = Socket::sockaddr_family($name);
    if ($family == Socket::AF_UNIX()) {
        my $path = Socket::unpack_sockaddr_un($name);
        return "unix:$path" if $path =~ m{\A/};
        return 'unix:' . Cwd::getcwd() . "/$path";
    }
    my ($error, $host, $port) =
        Socket::getnameinfo($name, Socket::NI_NUMERICHOST() | Socket::NI_NUMERICSERV());
    die "$origin: $error\n" if $error;
    return $family == Socket::AF_INET6() ? "[$host]:$port" : "$host:$port";
}

# Returns the addresses, each once.
sub addresses {
    my $self = shift;
    my %seen;
    return grep { !$seen{$_}++ } map { $_->{address} } @{ $self->{sockets} };
}

# Lets the sockets pass through exec(2). The variables of start_server and systemd are still correct
# then.
sub hand_on {
    my $self = shift;
    for my $socket (@{ $self->{sockets} }) {
        my $flags = fcntl $socket->{handle}, Fcntl::F_GETFD(), 0 or return "fcntl: $!\n";
        fcntl $socket->{handle}, Fcntl::F_SETFD(), $flags & ~Fcntl::FD_CLOEXEC()
            or return "fcntl: $!\n";
    }
    $ENV{ +OWN } = join ';', map { "$_->{address}=" . fileno $_->{handle} } @{ $self->{sockets} }
        if $self->{named_by_us};
    return;
}

# Closes the sockets in a process that is not the one in front.
sub leave {
    my $self = shift;
    close $_->{handle} for @{ delete $self->{sockets} // [] };
    POSIX::close($_) for map { /([0-9]+)/g } grep { defined } @ENV{ +PREDECESSOR, +DATAGRAMS };
    delete @ENV{@VARIABLES};
}

1;

__END__

=head1 NAME

Kirin::Inherited - listening sockets that a process passes to the kirin that it becomes

=head1 DESCRIPTION

This module is for L<Kirin::Front>. The sockets come from start_server, systemd or an upgrading
F<kirin>, which has started this process (C<from_environment>), or from handles (C<from_handles>,
the option C<listen_sock>). C<addresses> returns their addresses. C<hand_on> lets them pass through
exec(2). C<leave> closes them and removes the variables that name them.

=cut
