use v5.16;
use warnings;

use Cwd ();
use lib 't/lib';
use File::Temp;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Kirin::Store;
use LeasedPort qw(lease_port);
use Memcached;
use NeedsKirin;
use Plackup;
use Test::More;
use Time::HiRes ();

my $server = Memcached->start;
my $store = Kirin::Store->new(address => $server->address);

# Functions of any memcached.
sub commands_of_memcached {
    my $store = shift;
    is $store->get('a'), undef, 'nothing there';
    is $store->error, undef, 'which is no failure';
    is $store->set('a', 'one'), 1, 'set';
    is $store->get('a'), 'one', 'get';
    is $store->add('a', 'two'), '', 'add of what is there';
    is $store->replace('b', 'two'), '', 'replace of what is not';
    is $store->add('b', 'two'), 1, 'add';
    is $store->replace('b', 'three'), 1, 'replace';
    is_deeply $store->get_multi(qw(a b c)), { a => 'one', b => 'three' }, 'get_multi';
    is_deeply $store->get_multi, {}, 'of nothing';
    is $store->delete('a'), 1, 'delete';
    is $store->remove('a'), '', 'a second time';
    is $store->incr('n'), '', 'incr of what is not there';
    is $store->set('n', 5), 1, 'a number';
    is $store->incr('n'), 6, 'incr';
    is $store->incr('n', 10), 16, 'by ten';
    is $store->decr('n', 20), 0, 'decr ends at 0';
    is $store->error, undef, 'no failure so far';
    is $store->incr('b'), undef, 'incr of what is no number';
    like $store->error, qr/non-numeric/, 'fails, and says why';
    is $store->touch('b', 100), 1, 'touch';
    is $store->touch('gone', 100), '', 'of what is not there';

    my $bytes = join '', map chr, 0 .. 255;
    for my $value ('', '0', "END\r\n", $bytes, "$bytes\r\n" x 3000) {
        $store->set('v', $value);
        ok $store->get('v') eq $value, 'a value of ' . length($value) . ' bytes';
    }
    for my $value ({ a => [1, undef, "\x{9E92}"] }, ['x'], {}) {
        $store->set('r', $value);
        is_deeply $store->get('r'), $value, 'a reference';
    }
    my %many = map { ("key$_" => $_) } 1 .. 2500;
    $store->set($_, $many{$_}) for keys %many;
    is_deeply $store->get_multi(keys %many), \%many, 'more keys than a line has';

    $store->set('t', 'x', -1);
    is $store->get('t'), undef, 'a time to live that is over';
    $store->set('t', 'x', 60 * 60 * 24 * 365);
    is $store->get('t'), 'x', 'a year is a duration and no date';
    $store->set('t', 'x', 0.5);
    is $store->get('t'), 'x', 'half a second is not for ever, and not nothing';
    (bless {}, 'Plackup')->wait_until('it is over', sub { !defined $store->get('t') });
}

subtest 'the store' => sub { commands_of_memcached($store) };

subtest 'memcached' => sub {
    my ($program) = grep { -x } '/usr/bin/memcached'
        or plan skip_all => 'memcached is not installed';
    my $memcached = Memcached->start($program);
    commands_of_memcached(Kirin::Store->new(address => $memcached->address));
};

subtest 'what cannot be stored is refused before it is sent' => sub {
    for my $case (
        ['set', '', 1], ['set', 'a b', 1], ['set', "a\r\nflush_all", 1], ['set', 'x' x 251, 1],
        ['set', "\x{9E92}", 1],
        ['set', 'k', "\x{9E92}"], ['set', 'k', sub { }], ['set', 'k', 1, 'soon'],
        ['incr', 'k', '1 noreply'],
        ['set', 'k', 1, 0, tags                => ['a,b']], ['set', 'k', 1, 0, tags => ['x' x 65]],
        ['set', 'k', 1, 0, tags                => [1 .. 17]],
        ['set_page', '/', 'text/html', '', tag => 'a'], ['set_page', '/', [200, [], ['']], 'soon'],
        ['set_page', '/', [200, []]],
        ['purge', tag      => 'a'], ['purge', tags => ['a,b']], ['purge', keys => ['a', '']],
        ['purge', prefixes => "/\r\n"],
        ['purge_tag', 'a b'], ['purge_prefix', ''], ['set_page', '/', "text/html\r\nX: y", ''],
        ['set_page', '/', '', ''],
        ['set_response', '/', sub { }], ['set_response', '/', [200, ["X\r\n", 1], []]],
        ['set_response', '/', ['x', [], []]],
        )
    {
        my ($method, @arguments) = @$case;
        is $store->$method(@arguments), undef, $method;
        ok $store->error, $store->error;
    }
    is $store->set('k', 1), 1, 'and the connection is good';
    is $store->set('k', 'x' x 2_000_000), undef, 'too large for the store';
    like $store->error, qr/too large/, 'it says so';
    is $store->get('k') // 'none', 'none', 'and goes on';
};

subtest 'a namespace' => sub {
    my $mine = Kirin::Store->new(address => $server->address, namespace => 'mine:');
    $mine->set('a', 'x');
    is $store->get('mine:a'), 'x', 'before the key';
    is_deeply $mine->get_multi('a'), { a => 'x' }, 'but not in what comes back';
};

subtest 'tags and prefixes' => sub {
    my $fill = sub {
        $store->set('one', 1, 0, tags => ['red', 'small']);
        $store->set_page('/two', 'text/plain', 2, 0, tags => ['red']);
        $store->set('/three', 3);
    };
    my $left = sub { join ' ', sort keys %{ $store->get_multi(qw(one /two /three)) } };
    $fill->();
    is $store->purge_tag('red'), 1, 'a tag';
    is $left->(), '/three', 'all with it are gone';
    is $store->purge_tag('never'), '', 'a tag that nothing has';
    $fill->();
    is $store->purge_tag('small'), 1, 'another';
    is $left->(), '/three /two', 'only those are gone';
    $fill->();
    is $store->purge_prefix('/t'), 1, 'a prefix';
    is $left->(), 'one', 'all below it are gone';
    is $store->add('one', 2, 0, tags => ['red']), '', 'add with tags does not replace';
    is $store->replace('none', 2, 0, tags => ['red']), '', 'and replace does not add';
    $fill->();
    is $store->purge_tag('red', stale => 1), 1, 'a tag made stale';
    is $left->(), '/three /two one', 'nothing is gone';

    $fill->();
    is $store->purge(tags => ['small', 'never'], keys => ['/three', 'none']), 2, 'several at once';
    is $left->(), '/two', 'all of them are gone';
    $fill->();
    is $store->purge(prefixes => '/t', keys => 'one'), 2, 'single names';
    is $left->(), '', 'all of them are gone';
    is $store->purge(keys => []), 0, 'nothing at all';
    $store->set('soft', 'here', 0, tags => ['soft']);
    is $store->purge(keys => 'soft', tags => 'soft', soft => 1), 2, 'softly';
    is $store->get('soft'), 'here', 'it stays';
    is $store->purge(keys => 'soft', soft => 0), 1, 'not softly';
    is $store->get('soft'), undef, 'it is gone';
    $store->set("many$_", 1) for 1 .. 1000;
    is $store->purge(keys => [map "many$_", 1 .. 1000]), 1000, 'more than are sent at once';
    is_deeply $store->get_multi(map "many$_", 1 .. 1000), {}, 'all of them are gone';
};

subtest 'pages' => sub {
    for my $case (
        ['', ['text/plain', 'x'], "text/plain\r\nx"],
        ['ttl tags', ['text/plain', 'x', 100, tags => ['t']], "text/plain\r\nx"],
        ['ttl tags', ['text/plain', 'x', ttl => 100, tags => ['t']], "text/plain\r\nx"],
        ['tags', ['text/plain', 'x', tags => ['t']], "text/plain\r\nx"],
        [
            'tags',
            [
                [
                    404,
                    [
                        A             => 1, 'content-length' => 7, Connection => 'close',
                        'Kirin-Store' => 'ttl=1'
                    ],
                    ['x', 'y']
                ],
                tags => ['t']
            ],
            "HTTP/1.1 404\r\nA: 1\r\n\r\nxy"
        ],
        ['ttl', [[200, [], ['x']], 100], "HTTP/1.1 200\r\n\r\nx"],
        )
    {
        my ($options, $arguments, $stored) = @$case;
        my ($ttl, $tags) = map { scalar($options =~ /$_/) } qw(ttl tags);
        is $store->set_page('/page', @$arguments), 1, 'set_page';
        is $store->get('/page'), $stored, 'as it is stored';
        $store->connection->send("mg /page t\r\n");
        like $store->connection->line, $ttl ? qr/\AHD t(?:9[0-9]|100)\z/ : qr/\AHD t-1\z/,
            'its time to live';
        next if !$tags;
        is $store->purge(tags => 't'), 1, 'its tag';
        is $store->get('/page'), undef, 'purges it';
    }
};

subtest 'a store that is away' => sub {
    my $server = Memcached->start;
    my $store = Kirin::Store->new(address => $server->address);
    is $store->set('a', 1), 1, 'there';
    $server->stop;
    for my $method (qw(get set add replace delete incr decr touch purge purge_tag purge_prefix)) {
        is $store->$method($method =~ /purge/ ? 'a' : ('a', 1)), undef, $method;
        like $store->error,
            qr/\A\Q@{[ $server->address ]}\E: (?:it has closed|Connection refused)/, $store->error;
    }
    is_deeply $store->get_multi('a'), {}, 'get_multi';
    is $store->set_page('/', 'text/plain', 'x'), undef, 'set_page';
    $server->begin;
    is $store->set('a', 2), 1, 'there again';
    is $store->get('a'), 2, 'without a new object';
    is $store->error, undef, 'nothing to say';

    delete local $ENV{KIRIN_STORE};
    my $nowhere = Kirin::Store->new;
    is $nowhere->get('a'), undef, 'no address';
    like $nowhere->error, qr/KIRIN_STORE is not set/, 'says so';
    local $ENV{KIRIN_STORE} = $server->address;
    is $nowhere->get('a'), 2, 'it is looked for when it is needed';
    {
        my ($directory, $name) = $server->address =~ m{\Aunix:(.*)/([^/]+)\z};
        my $before = Cwd::getcwd();
        chdir $directory;
        my $relative = Kirin::Store->new(address => "unix:$name");
        is $relative->get('a'), 2, 'a path that is relative to the working directory';
        chdir $before;
    }
    my $port = lease_port();
    my $refused = Kirin::Store->new(address => "127.0.0.1:$port");
    is $refused->get('a'), undef, 'a port on which nobody listens';
    like $refused->error, qr/refused/, 'says so';
};

subtest 'a store that restarts between two commands is not noticed' => sub {
    my $server = Memcached->start;
    my $store = Kirin::Store->new(address => $server->address);
    $store->set('a', 1);
    $server->stop;
    $server->begin;
    is $store->set('a', 2), 1, 'the next command';
};

subtest 'peers that do not do what a memcached does' => sub {
    my $directory = File::Temp->newdir;
    my $listener = IO::Socket::UNIX->new(Local => "$directory/peer", Listen => 5) or die $!;
    for my $case (
        ['half a reply', "VALUE a 0 5\r\nab", qr/closed/],
        ['another protocol', "HTTP/1.1 400 Bad Request\r\n", qr/HTTP.1.1 400/],
        ['no line', 'x' x 20_000, qr/no reply of a memcached/],
        ['a wrong length', "VALUE a 0 1\r\nabcdef\r\nEND\r\n", qr/no reply of a memcached/],
        ['nothing', '', qr/closed/],
        ['an error line', "SERVER_ERROR out of memory\r\n", qr/out of memory/],
        ['broken JSON', "VALUE a 8 1\r\n{\r\nEND\r\n", qr/./],
        )
    {
        my ($name, $reply, $error) = @$case;
        my $pid = fork // die $!;
        if (!$pid) {
            my $client = $listener->accept;
            sysread $client, my $request, 100;
            syswrite $client, $reply;
            close $client;
            require POSIX;
            POSIX::_exit(0);
        }
        my $store = Kirin::Store->new(address => "unix:$directory/peer");
        is $store->get('a'), undef, $name;
        like $store->error, $error, $store->error;
        waitpid $pid, 0;
    }

    my $silent = Kirin::Store->new(address => "unix:$directory/peer", timeout => 0.05);
    is $silent->get('a'), undef, 'silence';
    like $silent->error, qr/no answer within 0.05 s/, $silent->error;
    is $silent->get('a'), undef, 'directly after it';
    like $silent->error, qr/no new try for a moment/, $silent->error;
};

subtest 'each process has a connection of its own' => sub {
    $store->set('whose', 'all');
    my @children = map {
        my $number = $_;
        my $pid = fork // die $!;
        if (!$pid) {
            my $good = 1;
            for (1 .. 200) {
                $store->set("child$number", $number) or $good = 0;
                $good = 0 if ($store->get("child$number") // '') ne $number;
            }
            require POSIX;
            POSIX::_exit($good ? 0 : 1);
        }
        $pid;
    } 1 .. 3;
    my $good = 1;
    for (1 .. 200) {
        $good = 0 if ($store->get('whose') // '') ne 'all';
    }
    ok $good, 'the parent reads its own replies';
    for my $pid (@children) {
        waitpid $pid, 0;
        is $?, 0, 'a child reads its own';
    }
};

subtest 'pages of an application behind Kirin' => sub {
    my $server = Plackup->start('
        use Kirin::Store;
        my $store = Kirin::Store->new;
        my $made = 0;
        sub {
            my $path = $_[0]{PATH_INFO};
            return [200, [], [$store->purge_tag("pages") // $store->error]] if $path eq "/purge";
            my $body = "<p>" . ++$made . " in $$ <!--# include part -->";
            $store->set("part", "with a part", 60);
            my $done = $path eq "/moved"
                ? $store->set_response($path, [301, [Location => "/page"], []], 60, tags => ["pages"])
                : $store->set_page($path, "text/html; charset=UTF-8", $body, 60, tags => ["pages"]);
            [200, ["X-Done" => $done // $store->error], ["made"]];
        }');
    my ($head, $body) = $server->receive($server->send('/page'));
    like $head, qr/^X-Done: 1\r?$/m, 'made by the application';
    is $body, 'made', 'its own answer';
    ($head, $body) = $server->receive($server->send('/page'));
    like $body, qr/\A<p>1 in [0-9]+ with a part\z/, 'then served from memory, with its include';
    like $head, qr{^Content-Type: text/html; charset=UTF-8\r?$}mi, 'and its media type';
    $server->get('/moved');
    ($head) = $server->receive($server->send('/moved'));
    like $head, qr{\AHTTP/1.1 301.*^Location: /page}ms, 'a whole response';
    is $server->get('/purge'), 1, 'purged by tag';
    is $server->get('/page'), 'made', 'made again';
};

done_testing;
