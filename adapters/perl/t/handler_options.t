use v5.16;
use warnings;
use lib 't/lib';
use Cwd ();
use File::Temp;
use IO::Socket::INET;
use IO::Socket::UNIX;
use NeedsKirin;
use Plack::Handler::Kirin;
use Test::More;

sub warnings_of(&) {
    my $code = shift;
    my @warnings;
    local $SIG{__WARN__} = sub { push @warnings, @_ };
    $code->();
    return @warnings;
}

subtest 'where to listen' => sub {
    my $here = Cwd::abs_path('.');
    for my $case (
        # Plack::Runner gives these for -p 5000; -o; --listen twice; -S.
        [[host => undef, port => 5000, listen    => [':5000'], socket => undef], ['*:5000'], 5000],
        [[host => '127.0.0.1', port => 1, listen => ['127.0.0.1:1']], ['127.0.0.1:1'], 1],
        [
            [port => 2, listen => [':2', '/run/a.sock'], socket => '/run/a.sock'],
            ['*:2', 'unix:/run/a.sock'], 2
        ],
        [[listen => ['a.sock'], socket => 'a.sock'], ["unix:$here/a.sock"], 'a.sock'],
        # Programs give these.
        [[host   => '127.0.0.1', port => 3], ['127.0.0.1:3'], 3],
        [[host   => 0, port           => 4], ['*:4'], 4],
        [[port   => '/run/b.sock'], ['unix:/run/b.sock'], '/run/b.sock'],
        [[socket => '/run/c.sock'], ['unix:/run/c.sock'], '/run/c.sock'],
        [[host   => '::1', port => 5], ['[::1]:5'], 5],
        [[], ['*:8080'], 8080],
        )
    {
        my ($options, $addresses, $port) = @$case;
        my $handler = Plack::Handler::Kirin->new(@$options);
        my $name = join ' ', map { ref ? "[@$_]" : $_ // 'undef' } @$options;
        is_deeply $handler->{listen}, $addresses, $name;
        is $handler->{port}, $port, 'the port that plackup says';
    }
};

subtest 'options of other servers are known' => sub {
    my @warnings = warnings_of {
        Plack::Handler::Kirin->new(
            max_workers => 3, 'max-reqs-per-child' => 10, min_reqs_per_child => 5, timeout => 300,
            keepalive_timeout    => 2,
            max_keepalive_reqs   => 1, max_keepalive_connection => 100, keepalive => '',
            spawn_interval       => 0.5,
            err_respawn_interval => 1, main_process_delay => 0.1, max_readahead_reqs => 100,
            child_exit           => sub { },
            server_ready         => sub { }, disable_keepalive => 1,
        );
    };
    is_deeply \@warnings, [], 'no warning';
    like(
        (warnings_of { Plack::Handler::Kirin->new(max_wrokers => 3) })[0],
        qr/option max_wrokers is not known/, 'a typo'
    );
};

subtest 'values that cannot be' => sub {
    for my $case (
        [max_workers => 'five'], [max_reqs_per_child => -1], [spawn_interval => 'x'],
        [deadline    => '0s'],
        [memory      => '1TB'], [child_exit => 'not code'], [listen_sock => \*STDIN],
        )
    {
        ok !eval { Plack::Handler::Kirin->new(@$case); 1 }, "@$case";
        like $@, qr/$case->[0]/, 'the error names the option';
    }
};

subtest 'sockets that are there' => sub {
    my $directory = File::Temp->newdir;
    my $tcp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die $!;
    my $unix = IO::Socket::UNIX->new(Local => "$directory/a=b.sock", Listen => 1) or die $!;
    my @addresses = ('127.0.0.1:' . $tcp->sockport, "unix:$directory/a=b.sock");
    my @ignored = (port => 5000, listen => [':5000']);
    {
        # start_server writes them in this form.
        local $ENV{SERVER_STARTER_PORT} = sprintf '8080=%d;%s=%d', $tcp->fileno,
            "$directory/a=b.sock", $unix->fileno;
        my $handler = Plack::Handler::Kirin->new(@ignored);
        is_deeply $handler->{listen}, \@addresses, 'SERVER_STARTER_PORT';
        is "$handler->{host} $handler->{port}", '127.0.0.1 ' . $tcp->sockport, 'what plackup says';
        $handler = Plack::Handler::Kirin->new(memcached => "$directory/a=b.sock");
        is_deeply $handler->{listen}, [$addresses[0]], 'one of them is the store';
        $handler = Plack::Handler::Kirin->new(@ignored, listen_sock => $unix);
        is_deeply $handler->{listen}, [$addresses[1]], 'listen_sock goes before';
    }
    my $handler = Plack::Handler::Kirin->new(@ignored);
    is_deeply $handler->{listen}, ['*:5000'], 'without any';
    for my $wrong ('8080', '8080=2', '8080=x', '8080=999', '8080=' . fileno DATA) {
        local $ENV{SERVER_STARTER_PORT} = $wrong;
        ok !eval { Plack::Handler::Kirin->new; 1 }, "$wrong is refused";
        like $@, qr/SERVER_STARTER_PORT/, 'the error';
    }
};

subtest 'the configuration' => sub {
    my $directory = File::Temp->newdir(q(a "quoted" ${X} directory XXXXXX), TMPDIR => 1);
    my $file = "$directory/kirin.toml";
    my $binary = Kirin::Front::binary();
    for my $settings (
        {},
        {
            threads    => 2, keep_alive => 5, memory => '128MB', memcached => ["unix:$directory/m"],
            workers    => 7,
            deadline   => 60, start_limit => '2m', queue_wait => '5s', queue => 10,
            body_limit => 1048576,
            sendfile   => ["$directory"],
        },
        )
    {
        my $front =
            Kirin::Front->new(listen => ["unix:$directory/http", '127.0.0.1:8080'], %$settings);
        $front->write_file($file, $front->configuration($file));
        my $said = qx('$binary' check --config '$file' 2>&1);
        is $?, 0, 'kirin takes it' or diag $said, $front->configuration($file);
    }
};

subtest 'the program' => sub {
    my $binary = Kirin::Front::binary();
    ok -x $binary, 'is found';
    local $ENV{KIRIN_BINARY} = '/nonexistent/kirin';
    ok !eval { Kirin::Front::binary() }, 'not where KIRIN_BINARY says that it is';
    like $@, qr{KIRIN_BINARY is /nonexistent/kirin}, 'the error';
    my $pid = $$;
    ok !eval {
        Plack::Handler::Kirin->new(socket => 'x')->run(sub { });
        1;
    }, 'run dies';
    is $$, $pid, 'in the process that called it';
};

done_testing;

__DATA__
