package RingSlot;
use v5.16;
use warnings;

use Kirin::Ring;
use RingTool;
use Socket qw(AF_UNIX MSG_WAITALL PF_UNSPEC SOCK_STREAM);

# This process as a worker, with a front that has one slot.
#
#     my $slot = RingSlot->start or plan skip_all => 'there is no ring';
#     $slot->put($request);
#     my $env = $slot->{ring}->take;
#     $slot->{ring}->answer($response, 0);
#     my ($phase, $bytes) = $slot->report;

sub start {
    my ($class, %size) = @_;
    my $program = Kirin::Ring::is_available() && RingTool->build('slot') or return;
    my ($connection, $commands) = map {
        socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die $!;
        [$ours, $theirs];
    } 1, 2;
    my $pid = fork // die $!;
    if (!$pid) {
        open STDIN, '<&', $connection->[1] or die $!;
        open STDOUT, '>&', $commands->[1] or die $!;
        exec $program, $size{request} // 16 * 1024, $size{answer} // 48 * 1024 or die $!;
    }
    my $ring = Kirin::Ring->attach(fileno $connection->[0], getppid) or die "not attached: $!";
    return bless {
        pid        => $pid,
        ring       => $ring,
        connection => $connection->[0],
        commands   => $commands->[0]
    }, $class;
}

sub put {
    my ($self, $request) = @_;
    send $self->{commands}, pack('L/a*', $request), 0 or die $!;
}

# Returns the phase of the slot after a report, and the answer.
sub report {
    my $self = shift;
    recv $self->{commands}, my $numbers, 8, MSG_WAITALL;
    my ($phase, $length) = unpack 'LL', $numbers;
    my $answer = '';
    recv $self->{commands}, $answer, $length, MSG_WAITALL if $length;
    return ($phase, $answer);
}

sub DESTROY {
    my $self = shift;
    local ($?, $!);
    kill TERM => $self->{pid};
    waitpid $self->{pid}, 0;
}

1;
