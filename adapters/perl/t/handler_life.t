use v5.16;
use warnings;
use lib 't/lib';
use File::Spec;
use File::Temp;
use IO::Socket::INET;
use LeasedPort qw(lease_port);
use NeedsKirin;
use POSIX ();
use Plackup;
use Test::More;

# The application returns the process that loaded it, the process that serves, and the parent of
# that.
my $PIDS = 'my $loaded = $$; sub { [200, [], [join " ", $loaded, $$, getppid]] }';

subtest 'plackup serves and stops' => sub {
    my $port = lease_port();
    my $server = Plackup->start($PIDS, '--listen', "127.0.0.1:$port", '--workers', 2);
    my ($loaded, $worker, $parent) = split ' ', $server->get('/');
    is $loaded, $server->{pid}, 'loaded before Kirin took over the process';
    ok kill(0, $worker, $parent) == 2, 'worker and parent are there';
    my $tcp = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
    ok $tcp && $server->get('/', $tcp), 'the second address';
    ok $server->left_behind, 'a private directory';
    is $server->stop('TERM'), 0, 'status after TERM';
    ok $server->all_gone($worker, $parent), 'no process is left';
    is_deeply [$server->left_behind], [], 'and no file';
    is $server->log, '', 'nothing to log';
};

subtest 'TERM lets a response end, and a worker leaves in order' => sub {
    my $server = Plackup->start('
        sub { open my $f, ">", "$ENV{TMPDIR}/begun" or die; select undef, undef, undef, 0.5; [200, [], ["done $$"]] }',
        '--child-exit', 'sub { open my $f, ">", "$ENV{TMPDIR}/exit-$$" or die }', '--max-workers',
        1);
    my $connection = $server->send('/');
    $server->wait_until('the request has begun', sub { -e "$server->{directory}/tmp/begun" });
    kill TERM => $server->{pid};
    my (undef, $body) = $server->receive($connection);
    my ($worker) = ($body // '') =~ /done ([0-9]+)/;
    ok $worker, 'the response came';
    is $server->wait, 0, 'status';
    ok -e "$server->{directory}/tmp/exit-$worker", 'child-exit was called';
};

subtest 'INT ends a request in progress' => sub {
    my $server = Plackup->start('
        sub { open my $f, ">", "$ENV{TMPDIR}/begun" or die; print {$f} $$; close $f; sleep 100; [200, [], []] }'
    );
    my $connection = $server->send('/');
    $server->wait_until('the request has begun', sub { -s "$server->{directory}/tmp/begun" });
    open my $begun, '<', "$server->{directory}/tmp/begun" or die $!;
    is $server->stop('INT'), 0, 'status';
    ok $server->all_gone(readline $begun), 'the worker is gone';
};

subtest 'when kirin is killed all processes end' => sub {
    my $server = Plackup->start($PIDS);
    my (undef, $worker, $parent) = split ' ', $server->get('/');
    is $server->stop('KILL'), 9, 'killed';
    ok $server->all_gone($worker, $parent), 'no process is left';
    is_deeply [$server->left_behind], [], 'and no file';
};

subtest 'when the parent of the application is killed all processes end' => sub {
    my $server = Plackup->start($PIDS);
    my (undef, $worker, $parent) = split ' ', $server->get('/');
    kill KILL => $parent;
    is $server->wait >> 8, 1, 'kirin ends with an error';
    ok $server->all_gone($worker), 'no process is left';
    is_deeply [$server->left_behind], [], 'and no file';
    like $server->log, qr/parent process ended/, 'the log says why';
};

subtest 'an address that is taken' => sub {
    my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1);
    my $server = Plackup->spawn($PIDS, '--listen', '127.0.0.1:' . $taken->sockport);
    is $server->wait >> 8, 1, 'status';
    like $server->log, qr/in use/, 'the reason';
    $server->wait_until('no file is left', sub { !$server->left_behind });
};

subtest 'a worker is replaced after its number of requests' => sub {
    my $server =
        Plackup->start($PIDS, '--workers', 1, '--max-reqs-per-child', 3, '--min-reqs-per-child', 2);
    my %count;
    $count{ (split ' ', $server->get('/'))[1] }++ for 1 .. 12;
    my @counts = sort values %count;
    ok @counts >= 4, 'several workers' or diag explain \%count;
    is_deeply [grep { $_ > 3 } @counts], [], 'none had more than 3 requests'
        or diag explain \%count;
};

subtest 'TTIN' => sub {
    my $server = Plackup->start('
        sub {
            my $body = "$$ " . getppid;
            return [200, [], [$body]] if $_[0]{PATH_INFO} ne "/hold";
            open my $begun, ">", "$ENV{TMPDIR}/begun" or die;
            select undef, undef, undef, 0.02 until -e "$ENV{TMPDIR}/go";
            return [200, [], [$body]];
        }', '--workers', 1);
    my ($first, $parent) = split ' ', $server->get('/');
    kill TTIN => $server->{pid};
    $server->wait_until('a second process', sub { 2 == split ' ', qx(ps -o pid= --ppid $parent) });
    my $held = $server->send('/hold');
    $server->wait_until('a worker is busy', sub { -e "$server->{directory}/tmp/begun" });
    my ($other) = split ' ', $server->get('/');
    open my $go, '>', "$server->{directory}/tmp/go" or die $!;
    my ($busy) = split ' ', ($server->receive($held))[1];
    isnt $other, $busy, 'another worker serves while one is busy';
    ok $first == $busy || $first == $other, 'one of them was there before';
    is $server->stop('TERM'), 0, 'status';
};

subtest 'HUP brings new code' => sub {
    my $app = 'my $loaded = $$; print "ready\n"; <STDIN>; my $store = $ENV{KIRIN_STORE} // "none";
        sub { [200, [], [join " ", "VERSION", $loaded, $$, getppid, $store, $ENV{GIVEN}]] }';
    local $ENV{GIVEN} = 'given';
    my $server =
        Plackup->start($app =~ s/VERSION/one/r, '--workers', 2, '--max-reqs-per-child', 1000);
    my ($version, $loaded, $worker, $parent, @more) = split ' ', $server->get('/');
    is "$version $loaded @more", "one $server->{pid} none given", 'the first code';

    $server->write_app('die "no such table\n"');
    kill HUP => $server->{pid};
    $server->wait_until(
        'the log says that it failed',
        sub { $server->log =~ /reload failed; generation 1 keeps serving/ }
    );
    is + (split ' ', $server->get('/'))[0], 'one', 'the old code goes on';
    like $server->log, qr/no such table/, 'the log says why';


    $server->write_app($app =~ s/VERSION/two/r);
    kill HUP => $server->{pid};
    my @seen;
    $server->wait_until(
        'the second code',
        sub { @seen = split ' ', $server->get('/'); $seen[0] eq 'two' }
    );
    is $seen[1], $seen[3], 'loaded in the parent of the new workers';
    like $seen[4], qr/^unix:.*store.sock$/, 'which knows the store when it is loaded';
    is $seen[5], 'given', 'the environment';
    ok $server->all_gone($worker, $parent), 'the old processes have left';

    kill HUP => $server->{pid};
    my $second = $seen[3];
    $server->wait_until(
        'the third generation',
        sub { (split ' ', $server->get('/'))[3] != $second }
    );
    my $third = (split ' ', $server->get('/'))[3];
    ok $server->all_gone($second), 'the second has left';
    kill TTIN => $server->{pid};
    $server->wait_until('a third worker', sub { 3 == split ' ', qx(ps -o pid= --ppid $third) });
    kill KILL => $third;
    $server->wait_until(
        'a killed parent is started again',
        sub { (split ' ', $server->get('/'))[3] != $third }
    );
    is $server->stop('TERM'), 0, 'status';
    is_deeply [$server->left_behind], [], 'no file is left';
};

subtest 'USR2 puts another kirin with new code in its place' => sub {
    my $files = File::Temp->newdir;
    my $app =
        'sub { [200, [], [join " ", "VERSION", getppid, join ",", grep { /^KIRIN_(?:LIST|PRED)/ } keys %ENV]] }';
    my $port = lease_port();
    my $server = Plackup->start(
        $app =~ s/VERSION/one/r, '--pid', "$files/pid", '--listen',
        "127.0.0.1:$port"
    );
    my $pid = sub { number_in("$files/pid") };
    is + (split ' ', $server->get('/'))[0], 'one', 'it serves';
    is $pid->(), $server->{pid}, 'the pid file';

    $server->write_app('die "no such table\n"');
    kill USR2 => $server->{pid};
    $server->wait_until(
        'the log says that it failed',
        sub { $server->log =~ /upgrade failed; this program keeps serving/ }
    );
    is + (split ' ', $server->get('/'))[0], 'one', 'the old one goes on';

    $server->write_app($app =~ s/VERSION/two/r);
    kill USR2 => $server->{pid};
    $server->wait_until('the next program', sub { $pid->() != $server->{pid} });
    is $server->wait, 0, 'the old one ends';
    my ($version, undef, @seen) = split ' ', $server->get('/');
    is $version, 'two', 'new code on the unix socket';
    my $tcp = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
    is + (split ' ', $server->get('/', $tcp))[0], 'two', 'and on the port';
    is_deeply \@seen, [], 'the application does not see how';
    my $second = $pid->();
    kill HUP => $second;
    my $parent = (split ' ', $server->get('/'))[1];
    $server->wait_until(
        'HUP works there too',
        sub { (split ' ', $server->get('/'))[1] != $parent }
    );
    kill TERM => $second;
    ok $server->all_gone($second), 'the new one ends';
    $server->wait_until('no file is left', sub { !$server->left_behind && !-e "$files/pid" });
};

subtest 'when kirin is killed after a HUP all processes end' => sub {
    my $server = Plackup->start($PIDS);
    my (undef, undef, $first) = split ' ', $server->get('/');
    kill HUP => $server->{pid};
    my ($worker, $parent);
    $server->wait_until(
        'the next generation',
        sub { (undef, $worker, $parent) = split ' ', $server->get('/'); $parent != $first }
    );
    is $server->stop('KILL'), 9, 'killed';
    ok $server->all_gone($worker, $parent), 'no process is left';
    is_deeply [$server->left_behind], [], 'and no file';
};

subtest 'HUP has no effect where the command would lead elsewhere' => sub {
    # The first process watches files, and its child serves.
    my $server = Plackup->start('sub { [200, [], [getppid]] }', '-r');
    my $parent = $server->get('/');
    my $front = qx(ps -o ppid= -p $parent) =~ s/\D//gr;
    isnt $front, $server->{pid}, 'a process that was forked';
    kill HUP => $front;
    $server->wait_until(
        'the log says that it cannot be',
        sub { $server->log =~ /cannot be loaded again/ }
    );
    is $server->get('/'), $parent, 'the application serves on';
    is $server->stop('TERM'), 0, 'status';
};

subtest 'no request fails while generations come and go' => sub {
    my $server = Plackup->start('sub { [200, [], ["hello"]] }', '--workers', 2);
    my @clients = map {
        pipe my $out, my $in or die $!;
        my $pid = fork // die $!;
        if (!$pid) {
            my ($answered, $answer) = (0, 'hello');
            $answered++
                until -e "$server->{directory}/enough"
                || ($answer = eval { $server->get('/') } // $@) ne 'hello';
            syswrite $in, $answer eq 'hello' ? $answered : "[$answer] after $answered";
            POSIX::_exit(0);
        }
        close $in;
        { pid => $pid, out => $out };
    } 1 .. 3;
    # The socket is there before the application is loaded, and a reload counts from then on.
    is $server->get('/'), 'hello', 'it serves';
    my $generations = 5;
    for my $number (2 .. $generations) {
        my %before = map { $_ => 1 } split ' ', qx(ps -o pid= --ppid $server->{pid});
        kill HUP => $server->{pid};
        $server->wait_until(
            "generation $number alone",
            sub {
                my @now = split ' ', qx(ps -o pid= --ppid $server->{pid});
                @now == 1 && !$before{ $now[0] };
            }
        );
    }
    open my $enough, '>', "$server->{directory}/enough" or die $!;
    my @results = map { waitpid $_->{pid}, 0; readline $_->{out} } @clients;
    is_deeply [grep { /[^0-9]/ } @results], [], 'every client got its answers';
    note "@results requests";
    is $server->stop('TERM'), 0, 'status';
    unlike $server->log, qr/WARN|ERROR/, 'nothing to complain about' or diag $server->log;
};

subtest 'a loader that delays loads in the worker' => sub {
    my $server = Plackup->start($PIDS, '-L', 'Delayed', '--workers', 1);
    my ($loaded, $worker) = split ' ', $server->get('/');
    is $loaded, $worker, 'loaded in the worker';
    is $server->stop('TERM'), 0, 'status';
};

subtest 'a loader that restarts' => sub {
    my $server = Plackup->start('sub { [200, [], ["first"]] }', '-r');
    is $server->get('/'), 'first', 'the first code';
    # The watcher may start a moment later than the server.
    $server->wait_until('it watches', sub { $server->log =~ /Watching/ });
    my $seen = '';
    my $tries = 0;
    $server->wait_until(
        'the second code',
        sub {
            $server->write_app('sub { [200, [], ["second"]] } #' . ' ' x $tries)
                if $tries++ % 100 == 0;
            my $socket = $server->connect or return 0;
            return ($seen = $server->get('/', $socket)) eq 'second';
        }
    );
    is $seen, 'second', 'the second code';
    is $server->stop('TERM'), 0, 'status';
};

sub number_in { open my $file, '<', $_[0] or return 0; return readline($file) + 0 }

subtest 'in the background' => sub {
    my $files = File::Temp->newdir;
    my @options = ('-D', '--pid', "$files/pid", '--error-log', "$files/log");
    my $server = Plackup->spawn($PIDS, @options);
    is $server->wait, 0, 'the first process ends';
    my (undef, $worker, $parent) = split ' ', $server->get('/');
    open my $file, '<', "$files/pid" or die $!;
    chomp(my $pid = readline $file);
    ok kill(USR2 => $pid), 'the file has the process id';
    my $next = $pid;
    $server->wait_until(
        'another takes its place',
        sub { $next = number_in("$files/pid") || $pid; $next != $pid }
    );
    ok $server->all_gone($pid, $worker, $parent), 'the first ends';
    ($pid, undef, $worker, $parent) = ($next, split ' ', $server->get('/'));
    ok kill(TERM => $pid), 'the file has the next process id';
    ok $server->all_gone($pid, $worker, $parent), 'all end';
    ok !-e "$files/pid", 'the file is gone';

    my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1);
    $server = Plackup->spawn($PIDS, @options, '--listen', '127.0.0.1:' . $taken->sockport);
    is $server->wait >> 8, 1, 'status if it cannot start';
    like $server->log, qr/has not started.*log/, 'the terminal hears of it';
    open my $log, '<', "$files/log" or die $!;
    like join('', <$log>), qr/in use/, 'the log says why';
};

subtest 'run returns once, in the process that has the application' => sub {
    my $directory = File::Temp->newdir;
    my $code = q{
        use Plack::Loader;
        my $directory = shift;
        END { open my $log, '>>', "$directory/ends"; print {$log} "$$\n" if $ENV{RETURNED} }
        my $ready = sub { open my $file, '>', "$directory/ready"; print {$file} "$_[0]{server_software} $$" };
        Plack::Loader->load('Kirin', listen => "$directory/http", server_ready => $ready)->run(sub { [200, [], []] });
        $ENV{RETURNED} = 1;
    };
    my $pid = fork // die $!;
    exec $^X, '-Ilib', '-e', $code, "$directory" or die $! if !$pid;
    (bless {}, 'Plackup')->wait_until('it is ready', sub { -s "$directory/ready" });
    open my $ready, '<', "$directory/ready" or die $!;
    my ($software, $parent) = split ' ', readline $ready;
    is $software, 'Kirin', 'server_ready is called with the handler';
    # Before it serves, TERM would end all processes at once.
    my $server = bless { socket => "$directory/http" }, 'Plackup';
    $server->get('/');
    kill TERM => $pid;
    waitpid $pid, 0;
    is $?, 0, 'status';
    open my $ends, '<', "$directory/ends" or die $!;
    is_deeply [<$ends>], ["$parent\n"], 'END ran in the parent of the workers';
};

subtest 'what workers share is told' => sub {
    my $program =
        'use IO::Socket::INET; my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1");
        my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $l->sockport); sub { [200, [], ["$l $c"]] }';
    my $server = Plackup->start($program);
    $server->get('/');
    like $server->log, qr/workers share descriptor [0-9]+, a connection to 127\.0\.0\.1/,
        'a connection';
    like $server->log, qr/-L Delayed/, 'and what to do';
    $server = Plackup->start($program, '-L', 'Delayed');
    $server->get('/');
    unlike $server->log, qr/workers share/, 'with that there is nothing to tell';
};

subtest 'files are handed to Kirin' => sub {
    my $server = Plackup->spawn('
        use Plack::App::File;
        my $file = Plack::App::File->new(file => __FILE__)->to_app;
        sub { $_[0]{PATH_INFO} eq "/file" ? $file->(@_) : [200, ["X-Sendfile" => __FILE__], []] }',
        '--sendfile', File::Spec->tmpdir);
    $server->wait_until('it serves', sub { $server->connect || !$server->is_running });
    for my $path ('/file', '/') {
        my ($head, $body) = $server->receive($server->send($path));
        like $head, qr{\AHTTP/1.1 200 }, "$path: status";
        like $head, qr/^ETag: "/m, 'as of a file server';
        unlike $head, qr/X-Sendfile|Kirin-File/i, 'the client does not see how';
        like $body, qr/Plack::App::File/, 'the file';
    }
};

done_testing;
