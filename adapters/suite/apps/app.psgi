use v5.16;
use warnings;

# The application of the adapter suite for Perl. README.md says what each path does.

use Cwd ();
use Digest::MD5 qw(md5_hex);
use Digest::SHA qw(sha1_base64);
use Fcntl qw(O_CREAT O_EXCL O_WRONLY);
use IO::File;
use POSIX ();

my $DIRECTORY = Cwd::getcwd();
my @TEXT = ('Content-Type' => 'text/plain');

# A file handle that knows its path, as Plack::App::File returns it.
package Suite::File {
    our @ISA = 'IO::File';

    sub open_file {
        my ($class, $path) = @_;
        my $handle = $class->new($path, '<:raw') or die "$path: $!";
        ${*$handle}{path} = $path;
        return $handle;
    }
    sub path { ${ *{ $_[0] } }{path} }
}

# A body that an application makes while it is read.
package Suite::Body {
    sub new { my ($class, %self) = @_; return bless \%self, $class }
    sub getline { return $_[0]{next}->() }
    sub close { $_[0]{close}->() if $_[0]{close} }
}

# An exception that has no text.
package Suite::Unprintable {
    use overload '""' => sub { die "no text\n" };
    sub new { return bless [], shift }
}

my $requests = 0;
my @kept;
my $version = slurp('version') // 'none';
load_badly(slurp('on-load') // '');

# Returns a file of the directory without the line end, or nothing if there is none.
sub slurp {
    my $name = shift;
    open my $file, '<', "$DIRECTORY/$name" or return;
    local $/;
    my $text = readline $file;
    chomp $text;
    return $text;
}

sub spurt {
    my ($name, $text) = @_;
    open my $file, '>', "$DIRECTORY/$name.new" or die "$name: $!";
    print {$file} $text;
    close $file;
    rename "$DIRECTORY/$name.new", "$DIRECTORY/$name" or die "$name: $!";
}

# Waits for a file. No process outlives the directory, so that a failed test leaves none behind.
sub wait_for_file {
    my $name = shift;
    until (-e "$DIRECTORY/$name") {
        POSIX::_exit(1) if !-d $DIRECTORY;
        select undef, undef, undef, 0.01;
    }
}

# Sleeps for good, whatever signals come.
sub hang { sleep 600 while 1 }

# Tells a test that this point is reached, and waits until the test goes on.
sub meet {
    my $name = shift;
    spurt("begun.$name", $$);
    wait_for_file("go.$name");
}

sub load_badly {
    my $how = shift;
    die "no such table: memo\n" if $how eq 'die';
    die "no such table:\nback\\slash\n" if $how eq 'lines';
    srand 42 if $how eq 'seed';
    exit 3 if $how eq 'exit';
    hang() if $how eq 'hang';
    print "failed by the application\nready\n" if $how eq 'print';
    meet('loading') if $how eq 'wait';
}

sub read_all {
    my $input = shift;
    my $body = '';
    1 while $input->read($body, 65_536, length $body);
    return $body;
}

sub text { return [200, [@TEXT], [@_]] }

sub counted { my $bytes = shift; return join ' ', length $bytes, md5_hex($bytes) }

# Returns this many bytes, all values from 0 to 250 in turn.
sub pattern {
    my $length = shift;
    state $unit = join '', map chr, 0 .. 250;
    return substr $unit x (1 + $length / 251), 0, $length;
}

# Returns a body of parts, each made when it is asked for.
sub parts {
    my ($close, @parts) = @_;
    return Suite::Body->new(
        next  => sub { my $part = shift @parts; return ref $part ? $part->() : $part },
        close => $close,
    );
}

# Streams what $code writes.
sub stream {
    my ($code, @headers) = @_;
    return sub {
        my $writer = shift->([200, [@TEXT, @headers]]);
        $code->($writer);
        $writer->close;
    };
}

sub add_cleanup { my ($env, $code) = @_; push @{ $env->{'psgix.cleanup.handlers'} }, $code }

# Answers an upgrade on the connection itself.
sub switch_protocols {
    my ($io, @fields) = @_;
    print {$io} join "\r\n", 'HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', @fields, '',
        '';
}

sub read_exactly {
    my ($io, $length) = @_;
    my $bytes = '';
    while (length $bytes < $length) {
        sysread $io, $bytes, $length - length $bytes, length $bytes or return;
    }
    return $bytes;
}

# Sends each message of a WebSocket back, up to the one that closes it (RFC 6455).
sub echo_messages {
    my $io = shift;
    while (defined(my $head = read_exactly($io, 2))) {
        my ($first, $length) = unpack 'CC', $head;
        $length &= 127;
        my $mask = read_exactly($io, 4) // return;
        my $data = read_exactly($io, $length) // return;
        $data ^= substr $mask x (1 + $length / 4), 0, $length;
        syswrite $io, pack('CC', $first, $length) . $data;
        return if ($first & 15) == 8;
    }
}

my %action = (
    # What a request is.
    '/env' => sub {
        my $env = shift;
        my @names = grep { /\A[A-Z]/ && !ref $env->{$_} } sort keys %$env;
        return text(map { "$_=$env->{$_}\n" } @names);
    },
    '/change-env' => sub {
        my $env = shift;
        $env->{HTTP_X_LEFT} = 'behind';
        delete @$env{qw(PATH_INFO QUERY_STRING)};
        return text('changed');
    },
    '/scheme' => sub { return text($_[0]{'psgi.url_scheme'}) },
    '/echo'   => sub {
        my $env = shift;
        my $type = $env->{CONTENT_TYPE} // 'application/octet-stream';
        return [200, ['Content-Type' => $type], [read_all($env->{'psgi.input'})]];
    },
    '/length'      => sub { return text(counted(read_all($_[0]{'psgi.input'}))) },
    '/input/lines' => sub {
        my ($input, $count, $bytes) = ($_[0]{'psgi.input'}, 0, '');
        while (defined(my $line = readline $input)) { $count++; $bytes .= $line }
        return text("$count " . counted($bytes));
    },
    '/input/part' => sub {
        $_[0]{'psgi.input'}->read(my $part, 5);
        return text($part);
    },
    '/input/beyond' => sub {
        my ($input, $length) = @{ $_[0] }{qw(psgi.input CONTENT_LENGTH)};
        $input->read(my $bytes, $length + 100);
        my $more = $input->read(my $rest, 100);
        return text(length($bytes) . " $more");
    },
    '/input/twice' => sub {
        my $input = $_[0]{'psgi.input'};
        my $first = read_all($input);
        seek $input, 0, 0 or die "seek: $!";
        return text(counted($first), ' ', read_all($input) eq $first ? 'again' : 'other');
    },
    '/input/close' => sub { close $_[0]{'psgi.input'}; return text('closed') },

    # Bodies.
    '/list'         => sub { return text('one', '', 'two') },
    '/nothing'      => sub { return [200, [@TEXT], []] },
    '/wrong-length' => sub { return [200, [@TEXT, 'Content-Length' => 1000], ['short']] },
    '/coded'        => sub {
        return [200, [@TEXT, 'Transfer-Encoding' => 'chunked'], ["3\r\none\r\n", "0\r\n\r\n"]];
    },
    '/iterate' => sub {
        return [200, [@TEXT], parts(sub { print STDERR "the body is closed\n" }, 'one', '', 'two')];
    },
    '/iterate/length' =>
        sub { return [200, [@TEXT, 'Content-Length' => 6], parts(undef, 'one', 'two')] },
    '/iterate/long' =>
        sub { return [200, [@TEXT, 'Content-Length' => 3], parts(undef, 'one', 'two')] },
    '/iterate/short' =>
        sub { return [200, [@TEXT, 'Content-Length' => 9], parts(undef, 'one', 'two')] },
    '/iterate/close-dies' => sub {
        return [200, [@TEXT], parts(sub { die "a bad close\n" }, 'one', 'two')];
    },
    '/stream' => sub {
        return stream(sub { $_[0]->write("part $_\n") for 1 .. 3 });
    },
    '/stream/wait' => sub {
        my $name = $_[0]{QUERY_STRING};
        return stream(
            sub { $_[0]->write("first\n"); wait_for_file("go.$name"); $_[0]->write("last\n") });
    },
    '/stream/large' => sub {
        return stream(sub { my $writer = shift; $writer->write(pattern(251_000)) for 1 .. 20 });
    },
    '/stream/endless' => sub {
        my $name = $_[0]{QUERY_STRING};
        my $body = Suite::Body->new(
            next  => sub { return 'x' x 65_536 },
            close => sub { spurt("closed.$name", $$) },
        );
        return [200, [@TEXT], $body];
    },
    '/writer' => sub {
        return stream(sub { $_[0]->write($_) for 'one', '', 'two' });
    },
    '/writer/endless' => sub {
        return stream(sub { $_[0]->write('x' x 65_536) while 1 });
    },
    '/delayed' => sub {
        return sub { $_[0]->([201, [@TEXT, 'X-Delayed' => 1], ['delayed']]) };
    },
    '/twice' => sub {
        return sub { $_[0]->([200, [@TEXT], ['first']]); $_[0]->([200, [@TEXT], ['second']]) };
    },

    # Fields of responses.
    '/fields/bytes' => sub {
        return [200, [@TEXT, 'X-Latin' => "caf\xe9", 'X-UTF-8' => "caf\xc3\xa9"], ["caf\xe9"]];
    },
    '/fields/repeated' => sub {
        return [200, [@TEXT, 'Set-Cookie' => 'a=1', 'Set-Cookie' => 'b=2'], ['cookies']];
    },
    '/fields/empty' => sub { return [200, [@TEXT, 'X-Empty' => ''], ['empty']] },
    '/fields/many'  => sub {
        return [200, [@TEXT, map { ("X-Field-$_" => 'v' x 300) } 1 .. 100], ['many']];
    },
    '/fields/hop-by-hop' => sub {
        return [200, [@TEXT, Connection => 'close', 'Keep-Alive' => 'x'], ['kept']];
    },
    '/fields/forged' => sub {
        return [
            200, [@TEXT, 'Kirin-File' => '1 2 3 4 5 /etc/passwd', 'Kirin-Cleanup' => 1],
            ['forged']
        ];
    },
    '/fields/line-end'      => sub { return [200, [@TEXT, 'X-A' => "a\r\nX-Evil: b"], ['a']] },
    '/fields/line-feed'     => sub { return [200, [@TEXT, 'X-A' => "a\nX-Evil: b"], ['a']] },
    '/fields/return'        => sub { return [200, [@TEXT, 'X-A' => "a\rb"], ['a']] },
    '/fields/nul'           => sub { return [200, [@TEXT, 'X-A' => "a\0b"], ['a']] },
    '/fields/control'       => sub { return [200, [@TEXT, 'X-A' => "a\x01b"], ['a']] },
    '/fields/name-line-end' => sub { return [200, [@TEXT, "X-A: 1\r\nX-Evil" => 'b'], ['a']] },
    '/fields/name-space'    => sub { return [200, [@TEXT, 'X Evil' => 'b', 'X-A' => 'a'], ['a']] },
    '/fields/name-colon'    => sub { return [200, [@TEXT, 'X:Evil' => 'b', 'X-A' => 'a'], ['a']] },
    '/fields/name-empty'    => sub { return [200, [@TEXT, '' => 'b', 'X-A' => 'a'], ['a']] },
    '/fields/wide'          => sub { return [200, [@TEXT, 'X-A' => "\x{263a}"], ['a']] },

    # Responses that the interface does not allow.
    '/odd/wide-body'  => sub { return text("\x{263a}") },
    '/odd/wide-later' => sub {
        return stream(sub { $_[0]->write("\x{263a}") });
    },
    '/odd/undefined'   => sub { return text('a', undef, 'b') },
    '/odd/no-response' => sub { return undef },
    '/odd/text-body'   => sub { return [200, [@TEXT], 'text'] },
    '/odd/number-body' => sub { return [200, [@TEXT], 5] },
    '/odd/no-fields'   => sub { return [200] },
    '/odd/never'       => sub {
        return sub { }
    },

    # Failures.
    '/die/before'     => sub { die "a bad day\n" },
    '/die/object'     => sub { die Suite::Unprintable->new },
    '/die/first-part' => sub {
        return [200, [@TEXT], parts(undef, sub { die "no first part\n" })];
    },
    '/die/in' => sub {
        return stream(sub { $_[0]->write('part'); die "too late\n" });
    },
    '/die/in-iterator' => sub {
        return [200, [@TEXT], parts(undef, 'part', sub { die "too late\n" })];
    },
    '/die/caught' => sub {
        eval { die "caught by the application\n" };
        return text("caught");
    },
    '/exit'      => sub { exit 3 },
    '/kill'      => sub { kill KILL => $$; hang() },
    '/kill/once' => sub {
        my $name = $_[0]{QUERY_STRING};
        sysopen my $file, "$DIRECTORY/killed.$name", O_CREAT | O_EXCL | O_WRONLY
            or return text('survived');
        kill KILL => $$;
        hang();
    },
    '/kill/in' => sub {
        return stream(sub { $_[0]->write('part'); kill KILL => $$; hang() });
    },

    # Requests that wait or take too long.
    '/wait'      => sub { meet($_[0]{QUERY_STRING}); return text("$$") },
    '/hang'      => sub { spurt("begun.$_[0]{QUERY_STRING}", $$); hang() },
    '/hang/loop' => sub { 1 while 1 },

    # The worker.
    '/version' => sub { return text($version) },
    '/pid'     => sub { return text("$$") },
    '/parent'  => sub { return text(getppid) },
    '/random'  => sub { return text(rand) },
    '/leave'   => sub { $_[0]{'psgix.harakiri.commit'} = 1; return text("$$") },
    '/log'     => sub {
        my $env = shift;
        $env->{'psgi.errors'}->print("a line for the log: $env->{QUERY_STRING}\n");
        return text('logged');
    },
    '/print' =>
        sub { print "a line on standard output: $_[0]{QUERY_STRING}\n"; return text('printed') },
    '/close-streams'  => sub { POSIX::close($_) for 0 .. 2; return text('closed') },
    '/ignore-signals' => sub { $SIG{$_} = 'IGNORE' for qw(TERM QUIT USR2 PIPE); return text("$$") },
    '/program'        => sub { my $output = `echo hello`; return text($output) },
    '/fork/child-dies' => sub {
        my $child = fork // die "fork: $!";
        die "a bad child\n" if !$child;
        waitpid $child, 0;
        return text('parent');
    },
    '/fork/child-answers' => sub {
        my $child = fork // die "fork: $!";
        return text('child') if !$child;
        waitpid $child, 0;
        return text('parent');
    },
    '/fork/background' => sub {
        my $name = $_[0]{QUERY_STRING};
        my $child = fork // die "fork: $!";
        if (!$child) { meet($name); spurt("done.$name", ''); POSIX::_exit(0) }
        return text("$$");
    },

    # After the response.
    '/cleanup' => sub {
        my $env = shift;
        my $name = $env->{QUERY_STRING};
        add_cleanup($env, sub { meet($name); print STDERR "cleaned up after $name\n" });
        return text("$$");
    },
    '/cleanup/stream' => sub {
        my $env = shift;
        my $name = $env->{QUERY_STRING};
        add_cleanup($env, sub { meet($name); print STDERR "cleaned up after $name\n" });
        return stream(sub { $_[0]->write("$$") });
    },
    '/cleanup/late' => sub {
        my $env = shift;
        my $name = $env->{QUERY_STRING};
        return stream(
            sub {
                $_[0]->write("$$");
                add_cleanup($env, sub { meet($name); print STDERR "cleaned up after $name\n" });
            }
        );
    },
    '/cleanup/die' => sub {
        my $env = shift;
        add_cleanup($env, sub { die "a bad handler\n" });
        add_cleanup($env, sub { print STDERR "the next handler runs\n" });
        return text('answered');
    },
    '/cleanup/leave' => sub {
        my $env = shift;
        my $name = $env->{QUERY_STRING};
        $env->{'psgix.harakiri.commit'} = 1;
        add_cleanup($env, sub { meet($name); print STDERR "cleaned up after $name\n" });
        return text("$$");
    },
    '/cleanup/after-die' => sub {
        add_cleanup($_[0], sub { print STDERR "cleaned up after a failure\n" });
        die "a bad day\n";
    },
    '/cleanup/hang' => sub {
        add_cleanup($_[0], sub { hang() });
        return text("$$");
    },
    '/cleanup/kill' => sub {
        add_cleanup($_[0], sub { kill KILL => $$; hang() });
        return text("$$");
    },

    # Informational responses.
    '/hints' => sub {
        my $env = shift;
        my $inform = $env->{'psgix.informational'};
        $inform->(103, [Link => '</style.css>; rel=preload', Connection => 'close']);
        wait_for_file("go.$env->{QUERY_STRING}");
        $inform->(103, [Link => '</more.css>; rel=preload']);
        return text('hinted');
    },
    '/hints/refused' => sub {
        my $inform = $_[0]{'psgix.informational'};
        my @refused = grep {
            !eval { $inform->($_, []); 1 }
        } 101, 200, 99;
        return text("refused: @refused");
    },
    '/hints/continue' => sub { $_[0]{'psgix.informational'}->(100, []); return text('continued') },
    '/hints/die'      => sub {
        $_[0]{'psgix.informational'}->(103, [Link => '</style.css>; rel=preload']);
        die "a bad day after a hint\n";
    },
    '/hints/line-end' => sub {
        my $inform = $_[0]{'psgix.informational'};
        my $sent = eval { $inform->(103, [Link => "</a>\r\nX-Evil: b"]); 1 };
        return text($sent ? 'sent' : 'refused');
    },

    # Upgrades.
    '/socket'  => sub { return text($_[0]{'psgix.io'} ? 'socket' : 'none') },
    '/upgrade' => sub {
        my $io = $_[0]{'psgix.io'} or return [426, [@TEXT, Upgrade => 'echo'], ['upgrade']];
        switch_protocols($io, 'Upgrade: echo', "X-Worker: $$");
        while (sysread $io, my $bytes, 65_536) { syswrite $io, $bytes }
        return;
    },
    '/upgrade/websocket' => sub {
        my $env = shift;
        my $io = $env->{'psgix.io'};
        my $key = "$env->{HTTP_SEC_WEBSOCKET_KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
        my $accept = sha1_base64($key) . '=';
        switch_protocols($io, 'Upgrade: websocket', "Sec-WebSocket-Accept: $accept");
        echo_messages($io);
        return;
    },
    '/upgrade/die' => sub {
        my $io = $_[0]{'psgix.io'};
        switch_protocols($io, 'Upgrade: echo');
        syswrite $io, 'bye';
        die "a bad day after the switch\n";
    },
    '/upgrade/response' => sub {
        my $io = $_[0]{'psgix.io'};
        switch_protocols($io, 'Upgrade: echo');
        syswrite $io, 'bye';
        return text('late');
    },
    '/upgrade/keep' => sub {
        push @kept, my $io = $_[0]{'psgix.io'};
        switch_protocols($io, 'Upgrade: echo');
        syswrite $io, 'bye';
        return;
    },
    '/upgrade/decline' => sub { die "declined\n" },
    '/upgrade/unasked' => sub { return [101, [Upgrade => 'echo'], []] },
    '/upgrade/writer'  => sub {
        return sub {
            my $writer = shift->([101, [Upgrade => 'echo']]);
            $writer->write($_) for 'hello ', 'and bye';
            $writer->close;
        };
    },
    '/upgrade/kill' => sub {
        my $io = $_[0]{'psgix.io'};
        switch_protocols($io, 'Upgrade: echo');
        syswrite $io, 'bye';
        kill KILL => $$;
        hang();
    },

    # Files.
    '/file' => sub { return [200, [@TEXT], Suite::File->open_file("$DIRECTORY/static/small.txt")] },
    '/file/large' =>
        sub { return [200, [@TEXT], Suite::File->open_file("$DIRECTORY/static/large.bin")] },
    '/file/missing' =>
        sub { return [404, [@TEXT], Suite::File->open_file("$DIRECTORY/static/small.txt")] },
    '/file/exact' => sub {
        return [
            200, [@TEXT, 'Content-Length' => 10],
            Suite::File->open_file("$DIRECTORY/static/small.txt")
        ];
    },
    '/file/shorter' => sub {
        return [
            200, [@TEXT, 'Content-Length' => 4],
            Suite::File->open_file("$DIRECTORY/static/small.txt")
        ];
    },
    '/file/tagged' => sub {
        return [
            200, [@TEXT, ETag => '"mine"'],
            Suite::File->open_file("$DIRECTORY/static/small.txt")
        ];
    },
    '/file/read' => sub {
        my $file = Suite::File->open_file("$DIRECTORY/static/small.txt");
        read $file, my $bytes, 4;
        return [200, [@TEXT], $file];
    },
    '/file/gone' => sub {
        spurt('static/temporary', 'temporary');
        my $file = Suite::File->open_file("$DIRECTORY/static/temporary");
        unlink "$DIRECTORY/static/temporary" or die "unlink: $!";
        return [200, [@TEXT], $file];
    },
    '/file/unnamed' => sub {
        open my $file, '<:raw', "$DIRECTORY/static/small.txt" or die $!;
        return [200, [@TEXT], $file];
    },
    '/file/cleanup' => sub {
        add_cleanup($_[0], sub { print STDERR "cleaned up after a file\n" });
        return [200, [@TEXT], Suite::File->open_file("$DIRECTORY/static/small.txt")];
    },
    '/file/leave' => sub {
        $_[0]{'psgix.harakiri.commit'} = 1;
        return [200, [@TEXT], Suite::File->open_file("$DIRECTORY/static/small.txt")];
    },
    '/sendfile' => sub {
        return [200, [@TEXT, 'X-Sendfile' => "$DIRECTORY/$_[0]{QUERY_STRING}"], []];
    },
);

sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    return text("$$ $requests") if $path eq '/state';
    $requests++;
    # Paths with a value in them.
    return $action{'/env'}->($env) if $path =~ m{\A/env};
    return text(pattern($1)) if $path =~ m{\A/bytes/([0-9]+)\z};
    return [$1, [@TEXT], ["status $1"]] if $path =~ m{\A/status/(.*)\z}s;
    my $code = $action{$path} or return [404, [@TEXT], ['no such action']];
    return $code->($env);
};
