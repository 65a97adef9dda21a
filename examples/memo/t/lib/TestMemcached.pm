package TestMemcached;
use v5.16;
use warnings;

use Cache::Memcached::Fast ();
use File::Temp ();
use IO::Socket::UNIX ();
use Time::HiRes ();

my $LONGEST_START_SECS = 10;

# Debian's memcached on a unix socket in a temporary folder; gone with the object.
sub new {
    my ($class) = @_;
    my $folder = File::Temp->newdir('memo-store-XXXXXXXX', TMPDIR => 1);
    my $self = bless { folder => $folder, socket => "$folder/store.sock", owner => $$ }, $class;
    $self->start;
    return $self;
}

sub start {
    my ($self) = @_;
    $self->{pid} = fork // die "fork: $!\n";
    if (!$self->{pid}) {
        exec 'memcached', '-s', $self->{socket}, '-u', scalar getpwuid($<), '-m', 64 or die "no memcached: $!\n";
    }
    my $deadline = time + $LONGEST_START_SECS;
    until (IO::Socket::UNIX->new(Peer => $self->{socket})) {
        die "memcached does not listen on $self->{socket}\n" if time > $deadline;
        Time::HiRes::sleep(0.01);
    }
    return;
}

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    # There is nothing it would save, and its orderly end takes a second.
    kill KILL => $pid;
    waitpid $pid, 0;
    unlink $self->{socket};
    return;
}

sub address { return "unix:$_[0]{socket}" }

# An item as another client sees it.
sub item {
    my ($self, $key) = @_;
    return Cache::Memcached::Fast->new({ servers => [$self->{socket}] })->get($key);
}

sub set {
    my ($self, $key, $value) = @_;
    Cache::Memcached::Fast->new({ servers => [$self->{socket}] })->set($key, $value) or die "cannot set $key\n";
    return;
}

# All that is in it, as key => value.
sub items {
    my ($self) = @_;
    my $socket = IO::Socket::UNIX->new(Peer => $self->{socket}) or die "memcached: $!\n";
    print {$socket} "lru_crawler metadump all\r\n";
    my @keys;
    while (my $line = <$socket>) {
        last if $line =~ /\AEND/;
        die "metadump: $line" if $line !~ /\Akey=(\S+)/;
        push @keys, $1 =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ger;
    }
    return map { $_ => $self->item($_) } @keys;
}

# As Kirin serves it: the body of a page with its includes filled.
sub page {
    my ($self, $path) = @_;
    my $page = $self->item($path) // return;
    my ($type, $body) = split /\r\n/, $page, 2;
    die "$path is $type" if $type ne 'text/html; charset=UTF-8';
    return $body =~ s{<!--# include (\S+) -->}{$self->item($1) // die "$path includes $1, which is missing"}ger;
}

sub DESTROY {
    my ($self) = @_;
    # A forked test process has a copy of this object, but the memcached is not its own.
    $self->stop if $self->{owner} == $$;
    return;
}

1;
