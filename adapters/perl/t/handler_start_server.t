use v5.16;
use warnings;
use lib 't/lib';
use File::Temp;
use IO::Socket::INET;
use IO::Socket::UNIX;
use LeasedPort qw(lease_port);
use NeedsKirin;
use Plackup;
use POSIX ();
use Socket ();
use Test::More;
use Time::HiRes ();

my ($start_server) = grep { -x } map { "$_/start_server" } File::Spec->path;
plan skip_all => 'start_server is not installed' if !$start_server;

# The application returns where it was loaded, and the starter's variables that it and its children
# see.
my $APP = '
    my $front = $$;
    sub { [200, [], [join " ", $front, $$, join ",", grep { /^(?:SERVER_STARTER_PORT|KIRIN_LISTENERS|LISTEN_FDS)$/ } sort keys %ENV]] }';

# Starts plackup -s Kirin behind start_server, on a unix socket and a port.
sub start {
    my @options = @_;
    my $port = lease_port();
    my $server = Plackup->start_behind(
        $APP, [$start_server, '--port', "127.0.0.1:$port", '--path', '%SOCKET%', '--'], @options,
    );
    return ($server, $port);
}

sub tcp { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $_[0]) }

# Returns the programs that have ended after another one had taken over.
sub replaced {
    my $server = shift;
    return scalar(() = $server->log =~ /^old worker [0-9]+ died/mg);
}

subtest 'all sockets, and again after HUP' => sub {
    my ($server, $port) = start('--workers', 1, '--pid', '%DIRECTORY%/pid');
    my ($front, $worker, $seen) = split ' ', $server->get('/');
    is $seen, '', 'the application does not see the sockets';
    is + (split ' ', $server->get('/', tcp($port)))[0], $front, 'the port serves too';
    is pid_in("$server->{directory}/pid"), $front, 'the pid file has the pid of the program';
    kill HUP => $server->{pid};
    $server->wait_until('the program is replaced', sub { replaced($server) == 1 });
    my ($next) = split ' ', $server->get('/');
    isnt $next, $front, 'new code';
    is + (split ' ', $server->get('/', tcp($port)))[0], $next, 'on the port too';
    is pid_in("$server->{directory}/pid"), $next, 'the pid file is the new one';
    ok $server->all_gone($front, $worker), 'the old one has left';
    is $server->stop('TERM'), 0, 'status';
    ok $server->all_gone($next), 'all end';
    is_deeply [$server->left_behind], [], 'no file is left';
};

sub pid_in {
    open my $file, '<', $_[0] or return "$_[0]: $!";
    chomp(my $pid = readline $file);
    return $pid;
}

subtest 'listen_sock' => sub {
    my $directory = File::Temp->newdir;
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) or die $!;
    my $code = q{
        use Plack::Loader; use IO::Socket::INET;
        my ($directory, $number) = @ARGV;
        open my $socket, '+<&=', $number or die $!;
        my $ready = sub { open my $file, '>', "$directory/ready"; print {$file} "$_[0]{host} $_[0]{port}" };
        Plack::Loader->load('Kirin', listen_sock => $socket, server_ready => $ready)->run(sub { [200, [], ['hello']] });
    };
    my $pid = fork // die $!;
    if (!$pid) {
        $^F = 100;
        my $number = POSIX::dup(fileno $socket);
        exec $^X, '-Ilib', '-e', $code, "$directory", $number or die $!;
    }
    my $server = bless { pid => $pid }, 'Plackup';
    $server->wait_until('it is ready', sub { -s "$directory/ready" || !$server->is_running });
    open my $ready, '<', "$directory/ready" or die $!;
    is readline $ready, '127.0.0.1 ' . $socket->sockport, 'where it listens';
    is $server->get('/', tcp($socket->sockport)), 'hello', 'it serves';
    is $server->stop('TERM'), 0, 'status';
};

# Returns pipes on which each client reports how many requests were answered, or the error. Each
# goes on until it is told to stop and has had at least so many answers.
sub start_clients {
    my ($count, $least, $request) = @_;
    my $stop = File::Temp->new;
    my @clients = map {
        pipe my $out, my $in or die $!;
        my $pid = fork // die $!;
        if (!$pid) {
            my $answered = 0;
            my $failure = '';
            until ($failure || $answered >= $least && -s "$stop") {
                my $answer = eval { $request->() } // '';
                if ($answer =~ /\A[0-9]+ [0-9]+ /) { $answered++ }
                else { $failure = "after $answered: " . ($@ || "[$answer]") }
            }
            syswrite $in, $failure || $answered;
            POSIX::_exit(0);
        }
        close $in;
        { pid => $pid, out => $out };
    } 1 .. $count;
    return { stop => $stop, clients => \@clients };
}

sub end_clients {
    my $all = shift;
    print { $all->{stop} } 'stop';
    $all->{stop}->flush;
    return map { waitpid $_->{pid}, 0; readline $_->{out} } @{ $all->{clients} };
}

subtest 'no request fails while programs come and go' => sub {
    my ($server, $port) = start('--workers', 2);
    my $clients = start_clients(3, 350, sub { $server->get('/', tcp($port)) });
    for my $number (1 .. 4) {
        kill HUP => $server->{pid};
        $server->wait_until("program $number is replaced", sub { replaced($server) == $number });
    }
    my @results = end_clients($clients);
    is_deeply [grep { !/\A[0-9]+\z/ } @results], [], 'every client got its answers';
    my $sum = eval join '+', @results;
    cmp_ok $sum // 0, '>', 1000, 'requests';
    note "$sum requests, 4 restarts";
    is $server->stop('TERM'), 0, 'status';
};

done_testing;
