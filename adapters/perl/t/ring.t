use v5.16;
use warnings;
use lib 't/lib';
use FakeFront;
use Kirin::Ring;
use WaitFactor qw(patient);
use RingTool;
use Test::More;
use Time::HiRes ();

# What is special to workers with a ring. t/ring_answers.t and t/through_ring.t compare them with
# others.

plan skip_all => 'the compiled part is not there' if !Kirin::Ring::is_available();
my $relay = RingTool->build('relay') or plan skip_all => 'the relay cannot be compiled';
local $ENV{KIRIN_TEST_RING} = $relay;

sub wait_until {
    my ($what, $condition) = @_;
    for (1 .. patient(1000)) {
        return pass $what if $condition->();
        Time::HiRes::sleep(0.02);
    }
    fail $what;
}

# Returns the pid of the only worker.
sub worker_of {
    my $front = shift;
    while (defined(my $line = $front->control_line)) {
        return $1 if $line =~ /\Astarted ([0-9]+)\z/;
    }
    die 'no worker';
}

subtest 'KIRIN_RING=0' => sub {
    local $ENV{KIRIN_TEST_RING};
    local $ENV{KIRIN_RING} = 0;
    my $front = FakeFront->start('sub { [200, [], ["hello"]] }');
    unlike $front->connect, qr/speaks/, 'a worker does not offer to use the ring';
    is $front->request->{body}, 'hello', 'and serves';
};

subtest 'a front that has no ring' => sub {
    local $ENV{KIRIN_TEST_RING};
    my $front = FakeFront->start('sub { [200, [], ["$$"]] }');
    my $pid = worker_of($front);
    like $front->connect, qr/ speaks=2 /, 'the worker offers to use it';
    kill TERM => $pid;
    is $front->control_line, "exited $pid 0", 'a worker that waits for the first words hears TERM';
    $front->connect;
    my $next = $front->request->{body};
    isnt $next, $pid, 'requests over the connection';
    kill TERM => $next;
    like $front->control_line, qr/started $next/, 'it is known';
    is $front->control_line, "exited $next 0", 'TERM after a request';
};

subtest 'a front that offers something else' => sub {
    local $ENV{KIRIN_TEST_RING};
    my $front = FakeFront->start('sub { [200, [], ["$$"]] }');
    for my $line ("KIRIN/2 seat=0\n", "KIRIN/3 something\n", "K\n") {
        $front->connect;
        $front->write($line);
        is $front->read_until("\n"), 'socket', "refused: $line";
        is $front->request->{status}, 200, 'and requests come over the connection';
        $front->disconnect;
    }
};

subtest 'TERM and QUIT end a worker that sleeps' => sub {
    for my $signal (qw(TERM QUIT)) {
        my $front = FakeFront->start('sub { [200, [], ["$$"]] }');
        my $pid = $front->request->{body};
        worker_of($front);
        wait_until 'it sleeps' => sub { sleeps($pid) };
        kill $signal => $pid;
        is $front->control_line, "exited $pid 0", $signal;
    }
};

# Returns whether a process waits in futex(2).
sub sleeps {
    my $pid = shift;
    open my $file, '<', "/proc/$pid/wchan" or return 0;
    return (readline($file) // '') =~ /futex/;
}

subtest 'a worker whose parent is killed' => sub {
    my $front = FakeFront->start('sub { [200, [], ["$$"]] }');
    my $pid = $front->request->{body};
    kill KILL => $front->{pid};
    waitpid delete $front->{pid}, 0;
    wait_until 'it has ended' => sub { !kill 0, $pid };
};

subtest 'USR2 shows where a request is' => sub {
    my $front =
        FakeFront->start(
        'sub hang { print STDERR "begun\n"; sleep 100; print STDERR "woken\n" } sub { hang(); [200, [], []] }'
        );
    my $pid = worker_of($front);
    $front->send(REQUEST_URI => '/hang');
    wait_until 'it has begun' => sub { $front->log =~ /begun/ };
    kill USR2 => $pid;
    wait_until 'the log has the stack' =>
        sub { $front->log =~ m{GET /hang: took too long\n.*hang()}s };
    unlike $front->log, qr/eval \{/, 'without the frames of the worker';
};

subtest 'processes that an application has forked' => sub {
    my $front = FakeFront->start(<<'PSGI');
my %kind = (
    plain => sub { [200, [], ['from the child']] },
    long => sub { [200, [], ['x' x 100_000]] },
    streamed => sub { sub { my $writer = $_[0]->([200, []]); $writer->write('from the child') } },
    informational => sub { $_[0]{'psgix.informational'}->(103, [Link => '</child>']); exit },
    dies => sub { die "in the child\n" },
    returns => sub { 'no response' },
    kept => sub { $_[0] },
);
sub {
    my $env = shift;
    return [200, [], [$$]] if !$env->{QUERY_STRING};
    my $pid = fork // die;
    return $kind{ $env->{QUERY_STRING} }->($env) if !$pid;
    waitpid $pid, 0;
    return [200, [], [$?]];
};
PSGI
    my $pid = $front->request->{body};
    for my $kind (qw(plain long streamed informational dies returns kept)) {
        my $response = $front->request(QUERY_STRING => $kind);
        is $response->{body}, 1 << 8, "$kind: the worker's answer, and the child has failed";
        is $front->request->{body}, $pid, 'the next';
    }
    like $front->log, qr/A forked process has returned a response/, 'the log says why';
};

subtest 'informational responses come before the final one' => sub {
    my $front = FakeFront->start(<<'PSGI');
my $kept;
sub {
    my $env = shift;
    my $send = $env->{'psgix.informational'};
    return [200, [], [$kept]] if !$env->{QUERY_STRING};
    push @{ $env->{'psgix.cleanup.handlers'} },
        sub { $kept = eval { $send->(103, ['X-Late' => 1]); 'sent' } // $@ };
    return [200, [], ['x' x $env->{QUERY_STRING}]];
};
PSGI
    for my $length (5, 100_000) {
        $front->request(QUERY_STRING => $length);
        $front->read_bytes(1);
        like $front->request->{body}, qr/can only precede/, "after $length bytes";
    }
};

subtest 'a worker that attaches again and again' => sub {
    my $front = FakeFront->start(<<'PSGI');
sub {
    my $env = shift;
    if ($env->{QUERY_STRING}) {
        return sub { my $writer = $_[0]->([200, []]); $writer->write('x' x 9999) while 1 };
    }
    my $descriptors = () = glob '/proc/self/fd/*';
    open my $maps, '<', '/proc/self/maps' or die;
    my $rings = grep { /memfd:ring/ } readline $maps;
    return [200, [], ["$$ $descriptors $rings"]];
};
PSGI
    my $first = $front->request->{body};
    for (1 .. 5) {
        # The worker keeps running if its response is cut.
        $front->send(QUERY_STRING => 'endless');
        $front->read_until("\r\n\r\n");
        $front->disconnect;
        is $front->request->{body}, $first, 'keeps nothing of the ring before';
    }
    like $first, qr/ 1\z/, 'one ring';
};

subtest 'an application that changes the environment and @INC while it is loaded' => sub {
    for my $deed ('%ENV = ()', '@INC = ()', 'chdir "/"', '$SIG{__DIE__} = sub { exit 3 }') {
        my $front = FakeFront->start("$deed; sub { [200, [], ['hello']] }");
        is $front->request->{body}, 'hello', $deed;
    }
};

subtest 'closed standard streams' => sub {
    my $front = FakeFront->start(<<'PSGI');
sub {
    my $env = shift;
    if ($env->{QUERY_STRING} eq 'close') { close STDIN; close STDOUT; close STDERR; require POSIX; POSIX::close($_) for 0 .. 2 }
    return sub { my $writer = $_[0]->([200, []]); $writer->write('x' x 9999) while 1 } if $env->{QUERY_STRING} eq 'endless';
    return [200, [], [grep { /eventfd|memfd/ } map { readlink("/proc/self/fd/$_") // '' } 0 .. 2]];
};
PSGI
    is $front->request(QUERY_STRING => 'close')->{status}, 200, 'the streams are closed';
    $front->send(QUERY_STRING => 'endless');
    $front->read_until("\r\n\r\n");
    $front->disconnect;
    is $front->request->{body}, '', 'and no descriptor of the ring takes their place';
};

done_testing;
