use v5.16;
use warnings;
use lib 't/lib';
use FakeFront;
use Fcntl ();
use POSIX ();
use WaitFactor qw(patient);
use Test::More;

# A STDERR that cannot be written loses log lines, and nothing else happens.

my $APP = <<'PSGI';
warn "loading\n";
print "to STDOUT\n";
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    if ($path eq '/talk') {
        for (1 .. 40) {
            $env->{'psgi.errors'}->print('e' x 5000, "\n");
            $env->{'psgix.logger'}->({ level => 'warn', message => 'm' x 5000 });
            warn 'w' x 5000, "\n";
            print STDERR 'p' x 5000, "\n";
            print 'o' x 5000, "\n";
            system "echo a program speaks >&2";
        }
        die "talked enough\n" if $env->{QUERY_STRING};
    }
    [200, [], [$$]];
}
PSGI

pipe my $unread, my $full or die $!;
my @broken;
my %stderr = (
    'a disk that is full'          => sub { open STDERR, '>', '/dev/full' or die $! },
    'no STDERR at all'             => sub { POSIX::close(2) },
    'a pipe whose reader has gone' => sub {
        pipe my $read, my $write or die $!;
        open STDERR, '>&', $write
            or die $!;
        close $read;
    },
    'a pipe that nobody reads' => sub { open STDERR, '>&', $full or die $! },
    'a file that is only read' => sub { open STDERR, '<', '/dev/null' or die $! },
);
for my $name (sort keys %stderr) {
    subtest $name => sub {
        # Otherwise a test that waits forever would never end.
        local $SIG{ALRM} = sub { die "$name: a process waits for its log\n" };
        alarm patient(60);
        my $front = FakeFront->start($APP, stderr => $stderr{$name});
        is $front->control_line, 'ready', 'the application is loaded';
        my ($pid) = $front->control_line =~ /([0-9]+)/;
        is $front->request(PATH_INFO => '/talk')->{body}, $pid,
            'a request that logs much is answered' for 1 .. 3;
        is $front->request(PATH_INFO => '/talk', QUERY_STRING => 'die')->{status}, 500,
            'an error is a 500';
        is $front->request->{body}, $pid, 'the worker goes on';
        kill TERM => $pid;
        is $front->control_line, "exited $pid 0", 'and leaves in order';
        like $front->control_line, qr/\Astarted/, 'another follows';
        $front->connect;
        is $front->request->{status}, 200, 'and serves';
        is $front->stop('TERM'), 0, 'all end in order';
        alarm 0;
    };
}

subtest 'a reader who comes back reads on' => sub {
    pipe my $read, my $write or die $!;
    my $front = FakeFront->start($APP, stderr => sub { open STDERR, '>&', $write or die $! });
    close $write;
    is $front->request(PATH_INFO => '/talk')->{status}, 200, 'nobody reads';
    my $text = '';
    fcntl $read, Fcntl::F_SETFL(), Fcntl::O_NONBLOCK();
    1 while sysread $read, $text, 65536, length $text;
    like $text, qr/^loading$/m, 'what there was room for is there';
    is $front->request(PATH_INFO => '/die')->{status}, 200, 'and a request';
    $front->request(PATH_INFO => '/talk');
    is sysread($read, my $more, 10), 10, 'then there is more';
};

done_testing;
