use v5.16;
use warnings;
use lib 't/lib';
use FakeFront;
use WaitFactor qw(patient);
use Test::More;

sub wait_until {
    my ($what, $condition) = @_;
    for (1 .. patient(1000)) {
        return pass $what if $condition->();
        select undef, undef, undef, 0.02;
    }
    fail $what;
}

my $HELLO = 'my $loaded = $$; sub { [200, [], ["$loaded $$ " . rand]] }';

subtest 'the parent loads once and says so' => sub {
    my $front = FakeFront->start($HELLO, workers => 2, generation => 7, name => 'web');
    is $front->control_line, 'ready', 'ready first';
    like $front->control_line, qr/\Astarted [0-9]+\z/, 'then its workers' for 1, 2;
    like $front->connect, qr/generation=7/, 'the greeting has the generation';
    my ($loaded, $pid, $first) = split ' ', $front->request->{body};
    is $loaded, $front->{pid}, 'loaded in the parent';
    isnt $pid, $loaded, 'served by a worker';
    my $title = sub { open my $file, '<', "/proc/$_[0]/cmdline" or return ''; readline $file };
    like $title->($pid), qr/kirin: web worker [12] \(app\.psgi\)/, 'process title of a worker';
    like $title->($loaded), qr/kirin: web parent \(app\.psgi\)/, 'and of the parent';

    $front->connect;
    my (undef, $other, $second) = split ' ', $front->request->{body};
    isnt $other, $pid, 'a second connection is taken by the other worker';
    isnt $second, $first, 'workers have random numbers of their own';

    is $front->stop('TERM'), 0, 'TERM ends it well';
    ok !kill(0, $pid) && !kill(0, $other), 'and its workers';
};

subtest 'a worker that ends is replaced' => sub {
    my $front = FakeFront->start($HELLO);
    $front->control_line for 1, 2;
    my (undef, $pid) = split ' ', $front->request->{body};
    kill KILL => $pid;
    is $front->control_line, "exited $pid 9", 'the front hears how it ended';
    like $front->control_line, qr/\Astarted [0-9]+\z/, 'and of the next';
    $front->connect;
    my (undef, $next) = split ' ', $front->request->{body};
    isnt $next, $pid, 'which serves';
};

subtest 'TTIN and TTOU change the number of workers' => sub {
    my $front = FakeFront->start($HELLO);
    $front->control_line;
    my ($first) = $front->control_line =~ /\Astarted ([0-9]+)\z/;
    kill TTIN => $front->{pid};
    is $front->control_line, 'workers 2', 'one more';
    my ($second) = $front->control_line =~ /\Astarted ([0-9]+)\z/;
    kill TTOU => $front->{pid};
    is $front->control_line, 'workers 1', 'one less';
    is $front->control_line, "exited $second 0", 'the one that came last leaves';
    kill TTOU => $front->{pid};
    is $front->control_line, 'workers 1', 'the last one stays';
    like $front->request->{body}, qr/\A[0-9]+ $first /, 'and serves';
};

subtest 'an application that cannot be loaded' => sub {
    my $front = FakeFront->start("die qq(line one\\nback\\\\slash\\n);\n");
    my $line = $front->control_line;
    like $line, qr/\Afailed .*line one\\nback\\\\slash\\n\z/, 'the reason is one line';
    is $front->control_line, undef, 'then the channel closes';
    waitpid delete $front->{pid}, 0;
    is $? >> 8, 1, 'exit status';
    unlike $front->log, qr/line one/, 'the front logs it, so that it is there once';
};

subtest 'TERM lets a request end' => sub {
    my $front = FakeFront->start(
        'sub { print "begun\n"; select undef, undef, undef, 0.3; [200, [], ["done"]] }');
    $front->control_line;
    my ($pid) = $front->control_line =~ /([0-9]+)/;
    $front->send;
    wait_until 'the request has begun' => sub { $front->log =~ /begun/ };
    kill TERM => $pid;
    my $response = $front->response;
    is $response->{body}, 'done', 'the response is whole';
    is $response->{header}{connection}, 'close', 'and says that the worker leaves';
    is $front->control_line, "exited $pid 0", 'the worker has left';
};

subtest 'QUIT waits until workers have left by themselves' => sub {
    my $front = FakeFront->start('sub { [200, [], [(select undef, undef, undef, 0.5) . $!]] }');
    $front->control_line;
    my ($pid) = $front->control_line =~ /([0-9]+)/;
    $front->request;
    kill QUIT => $front->{pid};
    is $front->request->{body}, '0', 'a worker goes on, and no signal interrupts what it waits for';
    $front->disconnect;
    is $front->control_line, "exited $pid 0", 'it leaves when its connection has ended';
    is $front->control_line, undef, 'and the parent';
    is $front->stop('TERM'), 0, 'in order';
};

subtest 'INT ends workers at once' => sub {
    my $front = FakeFront->start('sub { sleep 100; [200, [], []] }');
    $front->control_line for 1, 2;
    $front->send;
    is $front->stop('INT'), 0, 'the parent has ended';
    ok $front->response->{cut}, 'the request is cut';
};

subtest 'a worker leaves after its number of requests' => sub {
    my $front = FakeFront->start($HELLO, 'max-requests' => 2);
    my (undef, $pid) = split ' ', $front->request->{body};
    my $response = $front->request;
    is $response->{header}{connection}, 'close', 'its last response says so';
    $front->connect;
    my (undef, $next) = split ' ', $front->request->{body};
    isnt $next, $pid, 'another takes over';
};

subtest 'workers that leave in order are replaced, and those that die young' => sub {
    my $front = FakeFront->start(
        'sub { kill KILL => $$ if $_[0]{PATH_INFO} eq "/die"; [200, [], [$$]] }',
        'max-requests' => 1
    );
    my %seen;
    for (1 .. 20) {
        $front->connect;
        $seen{ $front->request->{body} }++;
    }
    is keys %seen, 20, 'twenty workers';

    for (1 .. 5) {
        $front->connect;
        $front->send(PATH_INFO => '/die');
        ok $front->response->{cut}, 'killed';
    }
    $front->connect;
    ok $front->request->{body}, 'after a pause there is one again';
};

subtest 'a front that lets an idle worker go has it replaced' => sub {
    my $front = FakeFront->start($HELLO);
    my (undef, $pid) = split ' ', $front->request->{body};
    $front->disconnect;
    wait_until 'the worker has ended' => sub { !kill 0, $pid };
    ok $front->request->{body}, 'the next serves';
};

subtest 'a front that cuts a response keeps the worker' => sub {
    my $front = FakeFront->start(
        'sub { $_[0]{PATH_INFO} eq "/" ? [200, [], [$$]] : sub { my $w = $_[0]->([200, []]); $w->write("x" x 9999) while 1 } }'
    );
    my $pid = $front->request->{body};
    $front->send(PATH_INFO => '/endless');
    $front->read_until("\r\n\r\n");
    $front->disconnect;
    is $front->request->{body}, $pid, 'it takes the next connection';
    unlike $front->log, qr/client has gone/, 'nothing to log';
};

subtest 'when the front is gone all processes end' => sub {
    pipe my $read, my $write or die $!;
    my $middle = fork // die $!;
    if (!$middle) {
        my $front = FakeFront->start($HELLO, workers => 2);
        my (undef, $pid) = split ' ', $front->request->{body};
        syswrite $write, "$front->{pid} $pid\n";
        kill KILL => $$;
    }
    waitpid $middle, 0;
    for my $pid (split ' ', readline $read) {
        wait_until "$pid has ended" => sub { !kill 0, $pid };
    }
};

done_testing;
