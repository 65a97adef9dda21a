package TestMemcached;
use v5.16;
use warnings;

use Cache::Memcached::Fast ();
use Encode ();
use File::Temp ();
use IO::Socket::UNIX ();
use JSON::PP ();
use Time::HiRes ();

my $LONGEST_START_SECS = 10;

# Debian's memcached on a unix socket in a temporary folder; gone with the object.
sub new {
    my ($class) = @_;
    my $folder = File::Temp->newdir('memo-store-XXXXXXXX', TMPDIR => 1);
    my $self = bless { folder => $folder, socket => "$folder/store.sock", owner => $$ }, $class;
    $self->start;
    return $self;
}

sub start {
    my ($self) = @_;
    $self->{pid} = fork // die "fork: $!\n";
    if (!$self->{pid}) {
        exec 'memcached', '-s', $self->{socket}, '-u', scalar getpwuid($<), '-m', 64
            or die "no memcached: $!\n";
    }
    my $deadline = time + $LONGEST_START_SECS;
    until (IO::Socket::UNIX->new(Peer => $self->{socket})) {
        die "memcached does not listen on $self->{socket}\n" if time > $deadline;
        Time::HiRes::sleep(0.01);
    }
    return;
}

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    # There is nothing it would save, and its orderly end takes a second.
    kill KILL => $pid;
    waitpid $pid, 0;
    unlink $self->{socket};
    return;
}

sub address { return "unix:$_[0]{socket}" }

# An item as another client sees it.
sub item {
    my ($self, $key) = @_;
    return Cache::Memcached::Fast->new({ servers => [$self->{socket}] })->get($key);
}

sub set {
    my ($self, $key, $value) = @_;
    Cache::Memcached::Fast->new({ servers => [$self->{socket}] })->set($key, $value)
        or die "cannot set $key\n";
    return;
}

sub delete {
    my ($self, $key) = @_;
    return Cache::Memcached::Fast->new({ servers => [$self->{socket}] })->delete($key);
}

# All that is in it, as key => value. A dump passes over items that memcached is moving between its
# lists just then, so it is asked again until they are all there.
sub items {
    my ($self) = @_;
    my ($deadline, %found) = (time + $LONGEST_START_SECS);
    until (keys %found == (my $count = $self->_count)) {
        die "memcached shows @{[ scalar keys %found ]} of $count items\n" if time > $deadline;
        %found = map { $_ => $self->item($_) } $self->_dumped_keys;
    }
    return %found;
}

sub _count {
    my ($self) = @_;
    my $socket = IO::Socket::UNIX->new(Peer => $self->{socket}) or die "memcached: $!\n";
    print {$socket} "stats\r\n";
    my $count;
    while (my $line = <$socket>) {
        $count = $1 if $line =~ /\ASTAT curr_items (\d+)/;
        last if $line =~ /\AEND/;
    }
    return $count // die "memcached does not count its items\n";
}

sub _dumped_keys {
    my ($self) = @_;
    my $socket = IO::Socket::UNIX->new(Peer => $self->{socket}) or die "memcached: $!\n";
    print {$socket} "lru_crawler metadump all\r\n";
    my @keys;
    while (my $line = <$socket>) {
        last if $line =~ /\AEND/;
        # Another dump is not over.
        return if $line =~ /\ABUSY/;
        die "metadump: $line" if $line !~ /\Akey=(\S+)/;
        push @keys, $1 =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ger;
    }
    return @keys;
}

# As Kirin serves it to a visitor (a TestVisitor; none: without a cookie): with its comments carried
# out.
sub page {
    my ($self, $path, $visitor) = @_;
    my $page = $self->item($path) // return;
    my ($type, $body) = split /\r\n/, $page, 2;
    die "$path is $type" if $type ne 'text/html; charset=UTF-8';
    return without_blank_lines($self->_carry_out($body, $visitor));
}

# Lines on which there are only comments for Kirin are empty in the page; the application has none.
# Nobody sees them.
sub without_blank_lines { return $_[0] =~ s/\n\s*\n/\n/gr }

sub _carry_out {
    my ($self, $html, $visitor) = @_;
    $html =~
        s{<!--# include ([^\s"]+) -->\n?}{$self->item($1) // die "include of $1, which is missing"}ge;
    $html =~ s{<!--# block .*?<!--# endblock -->\n?}{}gs;
    my $cookies = $visitor ? $visitor->cookies : {};
    my $session = JSON::PP::decode_json($self->item($cookies->{memo_session} // '-') // '{}');
    my $holds = sub {
        my ($expression) = @_;
        return 1 if !defined $expression;
        return $session->{$1} if $expression =~ /\A\$session\.(\w+)\z/;
        return $cookies->{$1} if $expression =~ /\A\$cookie_(\w+)\z/;
        return ($session->{$1} // '') eq $2 if $expression =~ /\A\$session\.(\w+) = (\w+)\z/;
        die "expression $expression";
    };
    $html =~ s{<!--# if expr="([^"]*)" -->\n?(.*?)<!--# endif -->\n?}{
        my ($first, $rest) = ($1, $2);
        my @branches = ($first, split /<!--# el(?:se|if expr="([^"]*)") -->\n?/, $rest);
        while (@branches) {
            my ($expression, $branch) = splice @branches, 0, 2;
            next if !$holds->($expression);
            @branches = ();
            $rest = $branch;
        }
        $rest;
    }gse;
    my %escaped = ('<' => '&lt;', '>' => '&gt;', '&' => '&amp;', '"' => '&quot;');
    $html =~ s{<!--# echo var="session\.(\w+)" default="" -->}{
        Encode::encode_utf8($session->{$1} // '') =~ s/([<>&"])/$escaped{$1}/gr
    }ge;
    $html =~ s{<!--# include virtual="([^"]+)" stub="\w+" -->\n?}{$visitor->get($1)->content}ge;
    return $html;
}

sub DESTROY {
    my ($self) = @_;
    # A forked test process has a copy of this object, but the memcached is not its own.
    $self->stop if $self->{owner} == $$;
    return;
}

1;
