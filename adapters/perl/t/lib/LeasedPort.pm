package LeasedPort;
use v5.16;
use warnings;

use Exporter qw(import);
use Fcntl qw(:flock);
use IO::Socket::INET;

our @EXPORT_OK = qw(lease_port);

# A port on 127.0.0.1 that no other test of this machine gets until this process ends. Kirin's tests
# in Rust use the same locks (tests/src/port.rs).
#
#     my $port = lease_port();

# The leased ports are below those that the kernel gives to clients.
use constant { FIRST => 20_000, USUAL_END => 32_768 };

# The locks end with their files.
my @locks;
my $leases = 0;

sub lease_port {
    my $directory = "/tmp/ktest-ports-$<";
    mkdir $directory, 0700 or $!{EEXIST} or die "$directory: $!";
    my $count = last_port() - FIRST;
    for (1 .. $count) {
        my $port = FIRST + ($$ * 7919 + $leases++) % $count;
        open my $lock, '>>', "$directory/$port" or die "$directory/$port: $!";
        next if !flock $lock, LOCK_EX | LOCK_NB;
        my %address = (LocalAddr => '127.0.0.1', LocalPort => $port);
        IO::Socket::INET->new(%address, Listen => 1, ReuseAddr => 1) or next;
        push @locks, $lock;
        return $port;
    }
    die 'no port is free';
}

# Returns the first port that the kernel gives to clients.
sub last_port {
    open my $file, '<', '/proc/sys/net/ipv4/ip_local_port_range' or return USUAL_END;
    my ($lowest) = split ' ', readline($file) // '';
    return ($lowest // 0) > FIRST + 1_000 ? $lowest : USUAL_END;
}

1;
