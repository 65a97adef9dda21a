package Memcached;
use v5.16;
use warnings;

use File::Temp ();
use IO::Socket::UNIX;
use Kirin::Front;
use WaitFactor qw(patient);
use Time::HiRes ();

# A memcached on a unix socket: Kirin's store alone, or another program with the same options.
#
#     my $server = Memcached->start;
#     my $store  = Kirin::Store->new(address => $server->address);

sub start {
    my ($class, @command) = @_;
    @command = (Kirin::Front::binary(), 'memcached') if !@command;
    push @command, '-u', 'root' if $> == 0;
    my $directory = File::Temp->newdir;
    my $self = bless { directory => $directory, command => \@command, path => "$directory/store" },
        $class;
    $self->begin;
    return $self;
}

sub begin {
    my $self = shift;
    unlink $self->{path};
    $self->{pid} = fork // die $!;
    if (!$self->{pid}) {
        open STDERR, '>>', "$self->{directory}/log" or die $!;
        exec @{ $self->{command} }, '-s', $self->{path} or die $!;
    }
    for (1 .. patient(1500)) {
        return if IO::Socket::UNIX->new($self->{path});
        Time::HiRes::sleep(0.02);
    }
    die "@{ $self->{command} } does not listen";
}

sub address { "unix:$_[0]{path}" }

sub stop {
    my $self = shift;
    my $pid = delete $self->{pid} or return;
    kill KILL => $pid;
    waitpid $pid, 0;
}

sub DESTROY {
    local ($?, $!);
    $_[0]->stop;
}

1;
