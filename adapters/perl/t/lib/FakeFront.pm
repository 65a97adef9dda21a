package FakeFront;
use v5.16;
use warnings;

use File::Temp ();
use IO::Socket::UNIX;
use RingRelay;
use Socket qw(SOCK_STREAM);

# The front's side of the protocol, for tests. It starts kirin-worker with an application and talks
# to its workers.
#
#     my $front = FakeFront->start('sub { [200, [], ["hello"]] }', workers => 1);
#     my $response = $front->request(REQUEST_METHOD => 'GET', PATH_INFO => '/');
#
# With KIRIN_TEST_RING requests go through the ring (RingRelay).

sub start {
    my ($class, $program, %option) = @_;
    # The target of STDERR, or code that opens it.
    my $open_stderr = delete $option{stderr};
    my $directory = File::Temp->newdir;
    my $self = bless { directory => $directory, log => "$directory/log" }, $class;
    open my $file, '>:raw', "$directory/app.psgi" or die $!;
    print {$file} $program;
    close $file or die $!;

    $self->{path} = "$directory/workers";
    my $listener = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => $self->{path}, Listen => 16)
        or die $!;
    pipe $self->{control}, my $control or die $!;
    my $front = $$;
    $self->{pid} = fork // die $!;
    if (!$self->{pid}) {
        open STDIN, '<&', $listener or die $!;
        open STDOUT, '>&', $control or die $!;
        open STDERR, '>>', $self->{log} or die $!;
        $open_stderr->() if $open_stderr;
        my @options = map { ("--$_", $option{$_}) } keys %option;
        exec $^X, '-Ilib', 'bin/kirin-worker', '--front', $front, @options, "$directory/app.psgi"
            or die $!;
    }
    return $self;
}

# Returns the next line of the control channel.
sub control_line {
    my $self = shift;
    my $line = readline $self->{control};
    chomp $line if defined $line;
    return $line;
}

# Opens a connection; returns the greeting.
sub connect {
    my $self = shift;
    $self->{socket} =
        $ENV{KIRIN_TEST_RING}
        ? RingRelay->connect($self->{path})
        : IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $self->{path})
        or die $!;
    $self->{unread} = '';
    return $self->{greeting} = $self->read_until("\n");
}

sub encode {
    my ($class, @pairs) = @_;
    my $head = join '', map { "$_\0" } @pairs;
    return length($head) . ":$head,";
}

# Sends a request: CGI names, and `body`.
sub send {
    my ($self, %env) = @_;
    my $body = delete $env{body} // '';
    $self->connect if !$self->{socket};
    my %default = (
        SCGI            => 1, REQUEST_METHOD       => 'GET', REQUEST_URI => '/', SCRIPT_NAME => '',
        PATH_INFO       => '/', QUERY_STRING       => '',
        SERVER_PROTOCOL => 'HTTP/1.1', SERVER_NAME => 'localhost', SERVER_PORT => 80,
        REMOTE_ADDR     => '127.0.0.1',
        REMOTE_PORT     => 1, HTTP_HOST => 'localhost',
    );
    my $request = FakeFront->encode(CONTENT_LENGTH => length $body, %default, %env) . $body;
    $self->write($request);
}

sub write {
    my ($self, $bytes) = @_;
    local $SIG{PIPE} = 'IGNORE';
    while (length $bytes) {
        my $count = syswrite($self->{socket}, $bytes) // die "write: $!";
        substr $bytes, 0, $count, '';
    }
}

# Reads a response: { status, headers => [[name, value], ...], header => { lower-case name => value
# }, body, cut }.
sub response {
    my ($self, $method) = @_;
    my $head = $self->read_until("\r\n\r\n") // return { cut => 1 };
    my ($status_line, @lines) = split /\r\n/, $head;
    my ($status) = $status_line =~ m{\AHTTP/1\.1 ([0-9]{3})\z} or die "status line: $status_line";
    my @headers = map { [split /: /, $_, 2] } @lines;
    my %header = map { lc $_->[0] => $_->[1] } @headers;
    my $response = { status => $status, headers => \@headers, header => \%header, body => '' };
    return $response
        if ($method // 'GET') eq 'HEAD' || $status < 200 || $status == 204 || $status == 304;
    if (($header{'transfer-encoding'} // '') eq 'chunked') {
        while (1) {
            my $line = $self->read_until("\r\n") // return { %$response, cut => 1 };
            my $data = $self->read_bytes(hex($line) + 2) // return { %$response, cut => 1 };
            last if length $data == 2;
            $response->{body} .= substr $data, 0, -2;
            $response->{chunks}++;
        }
    }
    elsif (defined $header{'content-length'}) {
        $response->{body} = $self->read_bytes($header{'content-length'})
            // return { %$response, cut => 1 };
    }
    else {
        die "the response has no framing: $head";
    }
    # A cleanup ends with a line end.
    die "bytes after the response: $self->{unread}"
        if length $self->{unread} && !($header{'kirin-cleanup'} && $self->{unread} eq "\n");
    return $response;
}

sub request {
    my ($self, %env) = @_;
    $self->send(%env);
    return $self->response($env{REQUEST_METHOD});
}

sub disconnect {
    my $self = shift;
    close delete $self->{socket};
}

sub read_until {
    my ($self, $end) = @_;
    while ((my $at = index $self->{unread}, $end) < 0) {
        sysread $self->{socket}, $self->{unread}, 65536, length $self->{unread} or return;
    }
    my $at = index $self->{unread}, $end;
    my $part = substr $self->{unread}, 0, $at;
    substr $self->{unread}, 0, $at + length $end, '';
    return $part;
}

sub read_bytes {
    my ($self, $count) = @_;
    while (length $self->{unread} < $count) {
        sysread $self->{socket}, $self->{unread}, 65536, length $self->{unread} or return;
    }
    return substr $self->{unread}, 0, $count, '';
}

# Returns the output of parent and workers to STDERR.
sub log {
    my $self = shift;
    open my $log, '<', $self->{log} or return '';
    local $/;
    return readline($log) // '';
}

sub stop {
    my ($self, $signal) = @_;
    my $pid = delete $self->{pid} // return;
    kill $signal // 'TERM', $pid;
    waitpid $pid, 0;
    return $?;
}

sub DESTROY {
    local ($?, $!);
    $_[0]->stop;
}

1;
