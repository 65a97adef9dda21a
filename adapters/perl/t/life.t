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

my $HELLO = 'my $loaded = $$; sub { [200, [], ["$loaded $$"]] }';

subtest 'the parent loads once and says so' => sub {
    my $front = FakeFront->start($HELLO, workers => 2, generation => 7, name => 'web');
    is $front->control_line, 'ready', 'ready first';
    like $front->control_line, qr/\Astarted [0-9]+\z/, 'then its workers' for 1, 2;
    like $front->connect, qr/generation=7/, 'the greeting has the generation';
    my ($loaded, $pid) = split ' ', $front->request->{body};
    is $loaded, $front->{pid}, 'loaded in the parent';
    isnt $pid, $loaded, 'served by a worker';
    my $title = sub { open my $file, '<', "/proc/$_[0]/cmdline" or return ''; readline $file };
    like $title->($pid), qr/kirin: web worker [12] \(app\.psgi\)/, 'process title of a worker';
    like $title->($loaded), qr/kirin: web parent \(app\.psgi\)/, 'and of the parent';

    $front->connect;
    my (undef, $other) = split ' ', $front->request->{body};
    isnt $other, $pid, 'a second connection is taken by the other worker';

    is $front->stop('TERM'), 0, 'TERM ends it well';
    ok !kill(0, $pid) && !kill(0, $other), 'and its workers';
};

subtest 'TTOU never ends the last worker' => sub {
    my $front = FakeFront->start($HELLO);
    $front->control_line;
    my ($pid) = $front->control_line =~ /\Astarted ([0-9]+)\z/;
    kill TTOU => $front->{pid};
    is $front->control_line, 'workers 1', 'it stays';
    like $front->request->{body}, qr/\A[0-9]+ $pid\z/, 'and serves';
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

done_testing;
