use v5.16;
use warnings;
use lib 't/lib';
use FakeFront;
use WaitFactor qw(patient);
use Test::More;
use Time::HiRes ();

# An application changes its process, while it is loaded or in a request. docs/perl.md has the table
# of what still works. In each case the parent replaces a worker, and a worker answers the next
# requests, takes a large body, logs, and leaves on TERM.

my %deed = (
    'Safe'          => 'use Safe; Safe->new->reval("1 + 1")',
    'Safe, several' =>
        'use Safe; my $safe = Safe->new; $safe->reval("sub { 1 }")->(); undef $safe; Safe->new->reval("2")',
    '%SIG emptied'        => '%SIG = ()',
    '%SIG undefined'      => 'undef %SIG',
    '%SIG localized'      => 'local %SIG = %SIG; 1',
    'all signals ignored' => '$SIG{$_} = "IGNORE" for qw(CHLD TERM QUIT PIPE USR2 TTIN TTOU)',
    'signals by default'  => '$SIG{$_} = "DEFAULT" for qw(CHLD TERM QUIT PIPE USR2 TTIN TTOU)',
    'handlers of its own' => '$SIG{$_} = sub { } for qw(CHLD TERM QUIT PIPE USR2 TTIN TTOU)',
    'handlers deleted'    => 'delete $SIG{$_} for qw(CHLD TERM QUIT PIPE USR2 TTIN TTOU)',
    'handlers localized'  =>
        'local $SIG{CHLD} = "IGNORE"; local $SIG{TERM} = "IGNORE"; local $SIG{PIPE} = "DEFAULT"; 1',
    '$SIG{__DIE__}'            => '$SIG{__DIE__} = sub { die "mine: $_[0]" }',
    '$SIG{__WARN__} that dies' => '$SIG{__WARN__} = sub { die @_ }',
    'separators'               => '$/ = undef; $\ = "END"; $, = ","; $" = ","; $; = ","; $| = 1',
    'records of a length'      => '$/ = \7',
    'select'                   => 'open our $file, ">", "/dev/null"; select $file; $| = 1',
    'STDIN closed'             => 'close STDIN',
    'STDOUT closed'            => 'close STDOUT',
    'all streams closed'       => 'close STDIN; close STDOUT; close STDERR',
    'descriptors closed'       => 'use POSIX (); POSIX::close($_) for 0 .. 2',
    'STDOUT opened elsewhere'  =>
        'open STDOUT, ">", "/dev/null"; open STDIN, "<", $0; open STDERR, ">", "/dev/null"',
    'streams to memory' =>
        'close STDOUT; open STDOUT, ">", \our $out; close STDERR; open STDERR, ">", \our $err',
    'streams tied' =>
        'package Tied { sub TIEHANDLE { bless [] } sub PRINT { die "tied" } sub WRITE { die } sub CLOSE { die } }
                                   tie *STDOUT, "Tied"; tie *STDERR, "Tied"; tie *STDIN, "Tied"',
    '$0'                       => '$0 = "something else"',
    'the working directory'    => 'chdir "/"',
    'a directory that is gone' => 'mkdir "/tmp/gone$$"; chdir "/tmp/gone$$"; rmdir "/tmp/gone$$"',
    'umask'                    => 'umask 0777',
    '%ENV emptied'             => '%ENV = ()',
    '%ENV localized'           => 'local %ENV = (A => 1); 1',
    '@INC emptied'             => '@INC = ()',
    'an alarm left over'       => 'alarm 1',
    '$@, $! and $_'            => '$@ = "left"; $! = 5; $_ = "left"; $? = 3',
    'blocked signals'          =>
        'use POSIX (); POSIX::sigprocmask(POSIX::SIG_BLOCK(), POSIX::SigSet->new(POSIX::SIGCHLD(), POSIX::SIGUSR2()))',
    'a random seed' => 'srand 42',
    'a child'       =>
        'my $pid = fork // die; if (!$pid) { require POSIX; POSIX::_exit(0) } waitpid $pid, 0',
    'a program'           => 'system "true"; `true`',
    'an object that dies' =>
        'package Dies { sub DESTROY { die "in DESTROY" } } { my $object = bless [], "Dies" } 1',
);

sub wait_until {
    my ($condition) = @_;
    for (1 .. patient(1000)) {
        return 1 if $condition->();
        Time::HiRes::sleep(0.01);
    }
    return 0;
}

sub check {
    my ($name, $program, $is_loading) = @_;
    my $front = FakeFront->start($program);
    my $ready = $front->control_line // '';
    is $ready, 'ready', 'it is loaded' or return diag $front->log;
    my ($first) = $front->control_line =~ /\Astarted ([0-9]+)\z/;
    is $front->request(PATH_INFO => '/do')->{body}, 'done', 'the request';
    is $front->request->{body}, $first, 'the same worker answers the next';
    my $body = 'x' x 1_200_000;
    is $front->request(REQUEST_METHOD => 'POST', body => $body, PATH_INFO => '/length')->{body},
        length $body, 'a large body';
    is $front->request(PATH_INFO => '/die')->{status}, 500, 'an error is an answer';
    like $front->log, qr/GET \/: (?:mine: )?died/, 'and the log has it';

    # This finds a worker that cannot be stopped.
    $front->send(PATH_INFO => '/slow');
    my $file = "$front->{directory}/app.psgi";
    ok wait_until(sub { -e "$file.begun" }), 'a request is in progress';
    kill TERM => $first;
    open my $go, '>', "$file.go" or die $!;
    is $front->response->{body}, 'slow', 'TERM lets the request end' if $name !~ /alarm/;
    is $front->control_line, "exited $first 0",
        'the parent hears that the worker has left in order';
    my ($second) = ($front->control_line // '') =~ /\Astarted ([0-9]+)\z/
        or return fail 'another worker';
    $front->connect;
    is $front->request->{body}, $second, 'the next serves';
    kill TTIN => $front->{pid};
    is $front->control_line, 'workers 2', 'the parent hears signals';
    is $front->stop('TERM'), 0, 'and ends in order';
}

my $APP = <<'PSGI';
    my ($path, $input) = @{ $_[0] }{qw(PATH_INFO psgi.input)};
    if ($path eq '/length') { my $n = 0; while (my $count = $input->read(my $part, 65536)) { $n += $count } return [200, [], [$n]] }
    if ($path eq '/slow') { open my $begun, '>', "$FILE.begun"; until (-e "$FILE.go") { } return [200, [], ['slow']] }
    die "died\n" if $path eq '/die';
PSGI

for my $name (sort keys %deed) {
    my $deed = $deed{$name};
    subtest "while loading: $name" => sub {
        check(
            $name,
            "my \$FILE = __FILE__; { $deed }\nsub { $APP [200, [], [\$path eq '/do' ? 'done' : \$\$]] }"
        );
    };
    # An alarm that the application leaves ends a worker, as intended.
    next if $name eq 'an alarm left over';
    subtest "in a request: $name" => sub {
        check(
            $name,
            "my \$FILE = __FILE__; sub { $APP if (\$path eq '/do') { $deed; return [200, [], ['done']] } [200, [], [\$\$]] }"
        );
    };
}

subtest
    'the handlers that an application has installed while it was loaded are there in its workers'
    => sub {
    my $front = FakeFront->start(
        '$SIG{$_} = "IGNORE" for qw(CHLD USR1 INT); sub { [200, [], [join ",", map { $SIG{$_} // "" } qw(CHLD USR1 INT HUP)]] }'
    );
    is $front->request->{body}, 'IGNORE,IGNORE,IGNORE,', 'CHLD, USR1, INT';
    };

subtest 'END blocks and destructors' => sub {
    my $front = FakeFront->start('
        my $file = __FILE__ . ".ends"; my $object = bless [], "Object";
        sub note { open my $log, ">>", $file; syswrite $log, "$_[0] $$\n" }
        END { note("end") } sub Object::DESTROY { note("destroy") if ${^GLOBAL_PHASE} ne "DESTRUCT" }
        sub { my $keep = $object; kill KILL => $$ if $_[0]{PATH_INFO} eq "/kill"; [200, [], [$$]] }',
        'max-requests' => 1);
    my $ends = "$front->{directory}/app.psgi.ends";
    my $count = sub {
        open my $file, '<', $ends or return '';
        join ' ', sort map { (split)[0] } readline $file;
    };
    my $pid = $front->request->{body};
    ok wait_until(sub { $count->() eq 'end' }), 'once in a worker that leaves in order';
    $front->connect;
    $front->send(PATH_INFO => '/kill');
    $front->response;
    is $count->(), 'end', 'not in one that is killed';
    $front->stop('TERM');
    my @lines = do { open my $file, '<', $ends or die; readline $file };
    my ($parent) = grep { /\Aend / && !/ $pid$/ } @lines;
    ok grep({ !/ $pid$/ } @lines) >= 1, 'once in the parent';
    my %seen;
    is scalar(grep { $seen{$_}++ } @lines), 0, 'nowhere twice';
};

done_testing;
