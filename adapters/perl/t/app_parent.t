use v5.16;
use warnings;
use lib 't/lib';
use File::Temp;
use IO::Socket::UNIX;
use Kirin::AppParent;
use Plackup;
use POSIX ();
use Test::More;
use Time::HiRes ();

# Starts an app parent with an application that is already loaded, as Kirin::Front does.

sub start {
    my (%option) = @_;
    my $directory = File::Temp->newdir;
    my $listener = IO::Socket::UNIX->new(Local => "$directory/workers", Listen => 5) or die $!;
    $listener->blocking(0);
    pipe my $control, my $out or die $!;
    my $front = $$;
    my $pid = fork // die $!;
    if (!$pid) {
        close $control;
        $0 = 'app_parent.t';
        my $status = Kirin::AppParent->new(
            app => sub { [200, [], []] }, app_file => $0, front => $front, listener => $listener,
            control => $out, %option,
        )->run;
        POSIX::_exit($status);
    }
    close $out;
    return { pid => $pid, control => $control, directory => $directory };
}

sub ends {
    my $parent = shift;
    (bless {}, 'Plackup')->wait_until(
        'the parent has ended',
        sub { waitpid($parent->{pid}, POSIX::WNOHANG()) == $parent->{pid} }
    );
    return $?;
}

subtest 'the control channel' => sub {
    my $parent = start(workers => 2);
    my $control = $parent->{control};
    is readline $control, "ready\n", 'ready at once';
    like readline $control, qr/\Astarted [0-9]+\n\z/, 'a worker' for 1 .. 2;
    kill TERM => $parent->{pid};
    is ends($parent), 0, 'TERM ends it';
};

subtest 'after QUIT each worker leaves when its connection ends' => sub {
    my $parent = start(workers => 2);
    readline $parent->{control} for 1 .. 3;
    kill QUIT => $parent->{pid};
    for (1 .. 2) {
        my $connection = IO::Socket::UNIX->new("$parent->{directory}/workers") or die $!;
        like readline $connection, qr/\AKIRIN/, 'a worker takes a connection even then';
        close $connection;
        like readline $parent->{control}, qr/\Aexited [0-9]+ 0\n\z/, 'and leaves after it';
    }
    is ends($parent), 0, 'so does the parent';
};

subtest 'workers do not start all at once' => sub {
    my $parent = start(workers => 2, spawn_interval => 0.3);
    my @times;
    readline $parent->{control};
    for (1 .. 2) {
        readline $parent->{control};
        push @times, Time::HiRes::time();
    }
    cmp_ok $times[1] - $times[0], '>', 0.1, 'the second waits';
    kill TERM => $parent->{pid};
    is ends($parent), 0, 'status';
};

subtest 'on_ready waits for the front' => sub {
    pipe my $read, my $write or die $!;
    my $parent = start(on_ready => sub { syswrite $write, "called\n" });
    is readline $parent->{control}, "ready\n", 'the application is there';
    my $connection = IO::Socket::UNIX->new("$parent->{directory}/workers");
    is readline $read, "called\n", 'with a connection that waits it is called';
    like readline $connection, qr{\AKIRIN/1 }, 'and that is taken by a worker';
    kill TERM => $parent->{pid};
    is ends($parent), 0, 'status';

    $parent = start(on_ready => sub { syswrite $write, "called\n" });
    readline $parent->{control};
    kill TERM => $parent->{pid};
    is ends($parent), 0, 'it can be told to end while it waits';
};

done_testing;
