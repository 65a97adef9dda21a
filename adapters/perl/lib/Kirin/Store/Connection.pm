package Kirin::Store::Connection;
use v5.16;
use warnings;

use Errno qw(EAGAIN EINPROGRESS EINTR);
use Socket
    qw(:addrinfo AF_UNIX IPPROTO_TCP MSG_NOSIGNAL SOCK_STREAM SOL_SOCKET SO_RCVTIMEO SO_SNDTIMEO TCP_NODELAY);
use Time::HiRes ();

# Seconds without a retry after a timeout. A host that does not answer must not cost every request
# the time limit. A refusal costs nothing, so there is no pause after it.
use constant PAUSE => 1;

use constant READ_BYTES => 64 * 1024;

# A reply line is shorter. Only a peer that is not a memcached sends more.
use constant LINE_BYTES => 8 * 1024;

sub new {
    my ($class, %args) = @_;
    return bless { address => $args{address}, timeout => $args{timeout}, buffer => '', pid => $$ },
        $class;
}

# Sends bytes. Connects if necessary. Returns true, or dies with the reason in one line.
sub send {
    my ($self, $bytes) = @_;
    $self->check;
    my $socket = $self->{socket} // $self->connect;
    my $sent = 0;
    while ($sent < length $bytes) {
        my $count = CORE::send $socket, $sent ? substr($bytes, $sent) : $bytes, MSG_NOSIGNAL;
        if (defined $count) {
            $sent += $count;
        }
        elsif ($! != EINTR) {
            $self->fail('write');
        }
    }
    return 1;
}

# Returns the next line, without its end.
sub line {
    my $self = shift;
    my $end;
    while (($end = index $self->{buffer}, "\r\n") < 0) {
        $self->fail_with('what came is no reply of a memcached')
            if length $self->{buffer} > LINE_BYTES;
        $self->fill;
    }
    my $line = substr $self->{buffer}, 0, $end;
    substr $self->{buffer}, 0, $end + 2, '';
    return $line;
}

# Returns a block of data of this length, without the line end after it.
sub block {
    my ($self, $length) = @_;
    $self->fill while length $self->{buffer} < $length + 2;
    my $block = substr $self->{buffer}, 0, $length;
    $self->fail_with('what came is no reply of a memcached')
        if substr($self->{buffer}, $length, 2) ne "\r\n";
    substr $self->{buffer}, 0, $length + 2, '';
    return $block;
}

sub fill {
    my $self = shift;
    while (1) {
        my $count = sysread $self->{socket}, $self->{buffer}, READ_BYTES, length $self->{buffer};
        return if $count;
        $self->fail_with('it has closed the connection') if defined $count;
        $self->fail('read') if $! != EINTR;
    }
}

# Closes a connection that cannot be used: the parent's in a forked process, one that the store has
# closed, or one with unexpected bytes.
sub check {
    my $self = shift;
    if ($self->{pid} != $$) {
        @$self{qw(pid not_before)} = ($$);
        $self->close;
    }
    return if !$self->{socket};
    vec(my $readable = '', fileno $self->{socket}, 1) = 1;
    $self->close if $self->{buffer} ne '' || select $readable, undef, undef, 0;
}

sub connect {
    my $self = shift;
    die "$self->{address}: $self->{failure}; no new try for a moment\n"
        if $self->{not_before} && Time::HiRes::time() < $self->{not_before};
    my $failure;
    for my $candidate ($self->candidates) {
        my ($family, $address) = @$candidate;
        socket my $socket, $family, SOCK_STREAM, 0 or $self->fail('socket');
        # Both limits hold for connect(2) too (socket(7)).
        my $seconds = int $self->{timeout};
        my $limit = pack 'l!l!', $seconds, int 1_000_000 * ($self->{timeout} - $seconds);
        setsockopt $socket, SOL_SOCKET, $_, $limit for SO_RCVTIMEO, SO_SNDTIMEO;
        setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1 if $family != AF_UNIX;
        return $self->{socket} = $socket if CORE::connect $socket, $address;
        $failure = $!{EINPROGRESS} || $!{EAGAIN} ? $self->too_long : "$!";
    }
    $self->fail_with($failure);
}

# Returns socket family and address for each meaning of the address.
sub candidates {
    my $self = shift;
    my $text = $self->{address} // '';
    if ($text =~ m{\A(?:unix:(.+)|(/.+))\z}s) {
        my $path = $1 // $2;
        $self->fail_with('the path of the socket is too long') if length $path > 107;
        return [AF_UNIX, Socket::pack_sockaddr_un($path)];
    }
    my ($host, $port) = $text =~ /\A\[?(.+?)\]?:([0-9]+)\z/
        or $self->fail_with('the address is not HOST:PORT or unix:PATH');
    my ($error, @found) = getaddrinfo($host, $port, { socktype => SOCK_STREAM });
    $self->fail_with("$error") if $error;
    return map { [$_->{family}, $_->{addr}] } @found;
}

sub close {
    my $self = shift;
    CORE::close $self->{socket} if $self->{socket};
    delete $self->{socket};
    $self->{buffer} = '';
}

sub too_long {
    my $self = shift;
    $self->{not_before} = Time::HiRes::time() + PAUSE;
    return "no answer within $self->{timeout} s";
}

sub fail {
    my ($self, $what) = @_;
    $self->fail_with($!{EAGAIN} ? $self->too_long : "$what: $!");
}

# After any failure, the next bytes on the connection would be the answer to another command.
sub fail_with {
    my ($self, $why) = @_;
    $self->close;
    $self->{failure} = $why;
    die +($self->{address} // 'no address') . ": $why\n";
}

1;

__END__

=head1 NAME

Kirin::Store::Connection - a connection to a memcached that is made at its first use

=head1 SYNOPSIS

    my $connection = Kirin::Store::Connection->new(address => 'unix:/run/store.sock', timeout => 1);
    $connection->send("get key\r\n");
    my $line = $connection->line;

=head1 DESCRIPTION

L<Kirin::Store> uses this module. Each method dies with one line when it fails, and the next C<send>
reconnects. A forked process gets its own connection. A command is never sent twice.

=cut
