use v5.16;
use warnings;
use Errno qw(EMFILE);
use Kirin::Worker::Input;
use POSIX ();
use Socket qw(AF_UNIX SOCK_STREAM);
use Test::More;

# Bodies that the front sends as bytes. A program of Rust tests those that it hands over.

# Returns what receive gets of a body of $length bytes of which $sent come, in pieces.
sub receive {
    my ($length, $sent) = @_;
    socketpair my $own, my $front, AF_UNIX, SOCK_STREAM, 0 or die $!;
    my $pid = fork // die $!;
    if (!$pid) {
        close $own;
        my $rest = 'a' x ($sent - 1) . 'z';
        syswrite $front, substr $rest, 0, 100_000, '' while length $rest;
        POSIX::_exit(0);
    }
    close $front;
    my @got = Kirin::Worker::Input::receive($own, $length, '');
    waitpid $pid, 0;
    return @got;
}

for my $length (1, 1024 * 1024, 1024 * 1024 + 1, 3_000_000) {
    # An application may set these.
    local ($\, $,) = ('end', 'between');
    my ($input, $reason) = receive($length, $length);
    is $reason, undef, "$length bytes: nothing is wrong";
    local $/;
    my $body = readline $input;
    is length $body, $length, "$length bytes: all are there";
    is substr($body, -1), 'z', "$length bytes: in their order";
    ok seek($input, 0, 0), "$length bytes: the handle can be sought";
    is read($input, my $first, 1), 1, "$length bytes: and read again";
}
is_deeply [receive(2_000_000, 1_500_000)], [], 'the front has gone: nothing, and no reason';
is_deeply [receive(200_000, 150_000)], [], 'the same for a body in memory';

subtest 'a body that is a descriptor' => sub {
    open my $file, '+>', undef or die $!;
    syswrite $file, "\xe9 in a file";
    sysseek $file, 0, 0;
    my ($input, $reason) = Kirin::Worker::Input::of_descriptor(POSIX::dup(fileno $file));
    is $reason, undef, 'nothing is wrong';
    is readline $input, "\xe9 in a file", 'it has the bytes';
    is_deeply [PerlIO::get_layers($input)], [qw(unix perlio)], 'no layer changes them';
    ($input, $reason) = Kirin::Worker::Input::of_descriptor(-2);
    is $input, undef, 'no descriptor was left: no handle';
    my $text = POSIX::strerror(EMFILE);
    like $reason, qr/\Q$text/, 'and a reason';
};

done_testing;
