package TestServed;
use v5.16;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp ();
use HTTP::Tiny ();
use POSIX ();
use Time::HiRes ();

# An application in another language, behind Kirin. The tests of this directory send their requests
# to it when MEMO_APP names its language.

my $REPOSITORY = abs_path(dirname(__FILE__) . '/../../../..');
# Its file that Kirin loads. The others are beside it.
my %FILE = (python => 'app.py', ruby => 'config.ru');
my $LONGEST_START_SECS = 60 * ($ENV{KIRIN_TEST_WAIT_FACTOR} || 1);
# Kirin's own, and those of the connection. All others are the application's.
my %LEFT_OUT = map { $_ => 1 } qw(connection date server transfer-encoding);

# All languages but Perl.
sub languages { return sort keys %FILE }

# The folder of the application in a language.
sub application { return "$REPOSITORY/examples/memo-$_[0]" }

# language, database (path), store (address, or none), workers (1 by default).
sub new {
    my ($class, %given) = @_;
    my $load = application($given{language}) . "/$FILE{ $given{language} }";
    my $folder = File::Temp->newdir("memo-$given{language}-XXXXXXXX", TMPDIR => 1);
    my $self = bless { folder => $folder, owner => $$ }, $class;
    my $store = $given{store} ? qq{KIRIN_STORE = "$given{store}", } : '';
    $self->_write_config(<<"CONFIG");
[[listener]]
address = "127.0.0.1:0"

[[app]]
name = "web"
load = "$load"
workers = @{[ $given{workers} // 1 ]}
env = { ${store}MEMO_DATABASE = "$given{database}" }

[[route]]
path = "/"
try = ["app:web"]
CONFIG
    $self->_start;
    return $self;
}

sub _write_config {
    my ($self, $text) = @_;
    open my $file, '>', "$self->{folder}/kirin.toml" or die "kirin.toml: $!\n";
    print {$file} $text;
    close $file or die "kirin.toml: $!\n";
    return;
}

sub _start {
    my ($self) = @_;
    my $kirin = $ENV{KIRIN_BINARY} || "$REPOSITORY/target/debug/kirin";
    $self->{pid} = fork // die "fork: $!\n";
    if (!$self->{pid}) {
        open STDOUT, '>', "$self->{folder}/log" or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT or POSIX::_exit(126);
        # Otherwise the application would get the store of the tests' own environment.
        delete $ENV{KIRIN_STORE};
        # The packages are those of Debian's own interpreters.
        $ENV{PATH} = "/usr/bin:$ENV{PATH}";
        # Other Kirins of this machine are not found from here.
        $ENV{KIRIN_ADMIN_DIRECTORY} = "$self->{folder}";
        exec $kirin, 'serve', '--config', "$self->{folder}/kirin.toml" or POSIX::_exit(127);
    }
    my $deadline = time + $LONGEST_START_SECS;
    until (($self->{url}) = $self->log =~ m{serving on (http://[^\s/]+)}) {
        die "kirin does not start:\n", $self->log
            if time > $deadline || waitpid $self->{pid}, POSIX::WNOHANG();
        Time::HiRes::sleep(0.01);
    }
    return;
}

sub log {
    my ($self) = @_;
    open my $file, '<', "$self->{folder}/log" or return '';
    local $/;
    return <$file> // '';
}

# A PSGI application that forwards each request.
sub psgi {
    my ($self) = @_;
    return sub { return $self->_forward($_[0]) };
}

sub _forward {
    my ($self, $env) = @_;
    my %headers = map { $_->[0] => $env->{ $_->[1] } }
        grep { defined $env->{ $_->[1] } }
        (['Content-Type', 'CONTENT_TYPE'], ['Cookie', 'HTTP_COOKIE']);
    read $env->{'psgi.input'}, my $body, $env->{CONTENT_LENGTH} || 0;
    my $answer = HTTP::Tiny->new(max_redirect => 0, keep_alive => 0)->request(
        $env->{REQUEST_METHOD},
        $self->{url} . $env->{REQUEST_URI},
        { headers => \%headers, content => $body }
    );
    die "$env->{REQUEST_URI}: $answer->{status} $answer->{content}\n", $self->log
        if $answer->{status} >= 500;
    my @headers;
    for my $name (grep { !$LEFT_OUT{$_} } sort keys %{ $answer->{headers} }) {
        my $values = $answer->{headers}{$name};
        push @headers, map { ($name => $_) } ref $values ? @$values : $values;
    }
    return [$answer->{status}, \@headers, [$answer->{content}]];
}

sub DESTROY {
    my ($self) = @_;
    # A forked test process has a copy of this object, but Kirin is not its own.
    return if $self->{owner} != $$ || !$self->{pid};
    local $?;
    kill TERM => $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

1;
