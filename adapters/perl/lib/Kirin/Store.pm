package Kirin::Store;
use v5.16;
use warnings;

use Carp ();
use MIME::Base64 ();
use Kirin::Store::Connection;
use Kirin::Worker;

our $VERSION = $Kirin::Worker::VERSION;

# The meaning of flags in memcached clients: 1 and 2 are Storable and compression in
# Cache::Memcached, 4 is UTF-8 in Cache::Memcached::Fast.
use constant FLAG_JSON => 8;

# memcached reads a larger time to live as a point in time (doc/protocol.txt).
use constant RELATIVE_SECONDS => 60 * 60 * 24 * 30;

# The most keys of one line, which may have a megabyte.
use constant KEYS_A_LINE => 1000;

# The most commands that are sent before their answers are read. They fit into the buffers of a
# socket.
use constant COMMANDS_AT_ONCE => 100;

# The longest key before it is written in base64, which has at most KEY_BYTES bytes.
use constant BASE64_KEY_BYTES => 186;

use constant { KEY_BYTES => 250, TAG_BYTES => 64, TAGS => 16 };

# The site of the request that this worker serves, or undef. Kirin::Worker sets it.
our $Site;

my $JSON = do {
    my ($class) = grep { eval "require $_" }
        qw(Cpanel::JSON::XS JSON::XS JSON::PP);    ## no critic: names from here
    $class->new->utf8->canonical->allow_nonref;
};

sub new {
    my ($class, %args) = @_;
    my $self = bless { timeout => 1, namespace => '', %args }, $class;
    if (my @unknown = grep { !/\A(?:address|timeout|namespace|site)\z/ } keys %args) {
        Carp::croak("Kirin::Store: unknown argument @unknown");
    }
    Carp::croak("Kirin::Store: the name of a site has no colon, slash and space")
        if defined $self->{site} && $self->{site} =~ m{[:/\s]};
    Carp::croak("Kirin::Store: timeout is a number of seconds above 0") if !($self->{timeout} > 0);
    return $self;
}

# Returns why the last call has failed, or undef if it has not.
sub error { $_[0]{error} }

sub get {
    my ($self, $key) = @_;
    return $self->guarded(
        sub {
            my $name = $self->name_of($key);
            $self->connection->send("get $name\r\n");
            my $found = $self->values_sent;
            my ($value) = values %$found;
            return $value;
        }
    );
}

# Returns the number for cas, and the value.
sub gets {
    my ($self, $key) = @_;
    return $self->guarded(
        sub {
            $self->connection->send('gets ' . $self->name_of($key) . "\r\n");
            my %unique;
            my $found = $self->values_sent(\%unique);
            my ($name) = keys %$found or return undef;    ## no critic: one value
            return [$unique{$name}, $found->{$name}];
        }
    );
}

# Works as set, but only if no client has stored the item since gets gave the number.
sub cas {
    my ($self, $key, $unique, $value, $ttl) = @_;
    return $self->store("cas $unique", $key, $value, $ttl);
}

sub get_multi {
    my ($self, @keys) = @_;
    my %found;
    $self->guarded(
        sub {
            my %key_of = map { $self->name_of($_) => $_ } @keys;
            my @names = keys %key_of;
            while (my @some = splice @names, 0, KEYS_A_LINE) {
                $self->connection->send('get ' . join(' ', @some) . "\r\n");
                my $values = $self->values_sent;
                $found{ $key_of{$_} } = $values->{$_} for keys %$values;
            }
            return 1;
        }
    );
    return \%found;
}

sub set { my $self = shift; return $self->store('set', @_) }
sub add { my $self = shift; return $self->store('add', @_) }
sub replace { my $self = shift; return $self->store('replace', @_) }

sub delete {
    my ($self, $key) = @_;
    return $self->simple('DELETED', sub { 'delete ' . $self->name_of($key) });
}

# Other caches than memcached use this name.
sub remove { my $self = shift; return $self->delete(@_) }

# Purges one key, or everything that is named. Sends all commands before it waits for the first
# answer.
sub purge {
    my $self = shift;
    if (@_ == 1) {
        my $purged = $self->purge(keys => [@_]);
        return defined $purged ? $purged > 0 : undef;    ## no critic: one value
    }
    my %names = @_;
    my $stale = delete $names{soft} ? ' I' : '';
    return $self->guarded(
        sub {
            my %suffix = (keys => '', prefixes => ' Pprefix', tags => ' Ptag');
            if (my @unknown = grep { !$suffix{$_} && $_ ne 'keys' } sort keys %names) {
                die "purge takes keys, prefixes, tags and soft, not @unknown\n";
            }
            my @commands;
            for my $kind (sort keys %names) {
                my $list = ref $names{$kind} eq 'ARRAY' ? $names{$kind} : [$names{$kind}];
                for (@$list) {
                    my $name = $kind eq 'tags' ? $self->tag_of($_) : $self->name_of($_);
                    my $cached = $kind eq 'tags' ? undef : cached_name($name, $kind);
                    push @commands,
                        [map { "md $_$stale\r\n" } $name . $suffix{$kind}, $cached // ()];
                }
            }
            my $purged = 0;
            while (my @some = splice @commands, 0, COMMANDS_AT_ONCE) {
                $self->connection->send(join '', map @$_, @some);
                for my $command (@some) {
                    my $found = grep { $self->verdict('HD') } @$command;
                    $purged += $found ? 1 : 0;
                }
            }
            return $purged;
        }
    );
}

# Returns the tags of the cached responses for a target, or for all targets that start with it
# (docs/cache.md). A target that is too long for its own tag also includes the targets that start as
# it does.
sub cached_name {
    my ($target, $kind) = @_;
    return undef if $target !~ m{\A(?:[^/:]+:)?/};    ## no critic: one value
    my $name = "\0c$target";
    my $suffix = $kind eq 'keys' && length $name <= BASE64_KEY_BYTES ? ' b Ptag' : ' b Pprefix';
    return MIME::Base64::encode_base64(substr($name, 0, BASE64_KEY_BYTES), '') . $suffix;
}

sub touch {
    my ($self, $key, $ttl) = @_;
    return $self->simple('TOUCHED', sub { 'touch ' . $self->name_of($key) . ' ' . expiry($ttl) });
}

sub incr { my $self = shift; return $self->count('incr', @_) }
sub decr { my $self = shift; return $self->count('decr', @_) }

sub set_page {
    my ($self, $target, $media_type, $body, @options) = @_;
    return $self->set_response($target, $media_type, $body, @options) if ref $media_type;
    my $ttl = @options % 2 ? shift @options : undef;
    return $self->guarded(
        sub {
            my %option = @options;
            $ttl //= delete $option{ttl};
            check_options(\%option);
            die "a page needs a media type, such as text/html; charset=UTF-8\n"
                if ($media_type // '') !~ m{\A[!-.0-~]+/[\t -~]+\z};
            return $self->put('set', $target, bytes("$media_type\r\n$body"), 0, $ttl, %option);
        }
    );
}

sub set_response {
    my ($self, $target, $response, @options) = @_;
    my $ttl = @options % 2 ? shift @options : undef;
    return $self->guarded(
        sub {
            my %option = @options;
            $ttl //= delete $option{ttl};
            check_options(\%option);
            my ($status, $headers, $body) = ref $response eq 'ARRAY' ? @$response : ();
            die "only a PSGI response with an array as its body can be stored\n"
                if ref $body ne 'ARRAY';
            die "status is no number of three digits\n" if ($status // '') !~ /\A[1-9][0-9][0-9]\z/;
            my $text = "HTTP/1.1 $status\r\n";
            for (my $i = 0; $i < @$headers; $i += 2) {
                my ($name, $value) = @$headers[$i, $i + 1];
                die "line end or NUL in a response header\n" if "$name$value" =~ /[\r\n\0]/;
                next
                    if $name =~
                    /\A(?:connection|content-length|keep-alive|kirin-\w+|transfer-encoding)\z/i;
                $text .= "$name: $value\r\n";
            }
            return $self->put(
                'set', $target, bytes(join '', $text, "\r\n", @$body), 0, $ttl,
                %option
            );
        }
    );
}

sub purge_tag { my $self = shift; return $self->purge_one(tags => @_) }
sub purge_prefix { my $self = shift; return $self->purge_one(prefixes => @_) }

sub purge_one {
    my ($self, $kind, $name, %option) = @_;
    my $purged = $self->purge($kind => [$name], soft => $option{soft} || $option{stale});
    return defined $purged ? $purged > 0 : undef;    ## no critic: one value
}

# Runs code that may fail. No failure of the store ends the application.
sub guarded {
    my ($self, $code) = @_;
    my $result;
    local ($@, $!);
    local $SIG{__DIE__};
    if (eval { $result = $code->(); 1 }) {
        $self->{error} = undef;
        return $result;
    }
    $self->{error} = "$@" =~ s/\n\z//r;
    return undef;    ## no critic: the same in list context, so that it can stand among arguments
}

sub connection {
    my $self = shift;
    my $address = $self->{address} // $ENV{KIRIN_STORE}
        // die "no address: KIRIN_STORE is not set\n";
    return $self->{connection} //=
        Kirin::Store::Connection->new(address => $address, timeout => $self->{timeout});
}

# Sends a command of one line. Returns true for the expected answer, and false if the store says
# that there was no such item.
sub simple {
    my ($self, $expected, $command) = @_;
    return $self->guarded(
        sub {
            my $line = $command->();
            $self->connection->send("$line\r\n");
            return $self->verdict($expected);
        }
    );
}

sub verdict {
    my ($self, $expected) = @_;
    my $line = $self->connection->line;
    return 1 if $line eq $expected;
    return '' if $line =~ /\A(?:NOT_FOUND|NOT_STORED|EXISTS|NF|NS|EX)\z/;
    $self->refused($line);
}

# After an error line the connection may have other bytes, for example those of the refused command.
sub refused {
    my ($self, $line) = @_;
    $self->connection->fail_with(
        $line =~ /\A[ -~]{1,200}\z/ ? $line : 'what came is no reply of a memcached');
}

sub store {
    my ($self, $command, $key, $value, $ttl, @options) = @_;
    return $self->guarded(
        sub {
            return $self->put($command, $key, bytes($value), 0, $ttl, @options) if !ref $value;
            return $self->put($command, $key, $JSON->encode($value), FLAG_JSON, $ttl, @options);
        }
    );
}

sub put {
    my ($self, $command, $key, $bytes, $flags, $ttl, %option) = @_;
    my ($name, $expiry, $length) = ($self->name_of($key), expiry($ttl), length $bytes);
    if (my $tags = $option{tags}) {
        die "more than ${\ TAGS} tags\n" if @$tags > TAGS;
        if (@$tags) {
            my $list = join ',', map { $self->tag_of($_) } @$tags;
            my $mode = { set => 'S', add => 'E', replace => 'R' }->{$command};
            $self->connection->send(
                "ms $name $length T$expiry F$flags M$mode Ptags=$list\r\n$bytes\r\n");
            return $self->verdict('HD');
        }
    }
    my $unique = $command =~ s/\Acas ([0-9]+)\z/cas/ ? " $1" : '';
    $self->connection->send("$command $name $flags $expiry $length$unique\r\n$bytes\r\n");
    return $self->verdict('STORED');
}

sub count {
    my ($self, $command, $key, $by) = @_;
    return $self->guarded(
        sub {
            $by //= 1;
            die "$command by a number that is not whole: $by\n" if $by !~ /\A[0-9]{1,20}\z/;
            my $name = $self->name_of($key);
            $self->connection->send("$command $name $by\r\n");
            my $line = $self->connection->line;
            return $line if $line =~ /\A[0-9]+\z/;
            return '' if $line eq 'NOT_FOUND';
            $self->refused($line);
        }
    );
}

# Returns the values of a retrieval, by their names in the store.
sub values_sent {
    my ($self, $unique) = @_;
    my $connection = $self->connection;
    my %found;
    while ((my $line = $connection->line) ne 'END') {
        my ($name, $flags, $length, $number) =
               $line =~ /\AVALUE (\S+) ([0-9]+) ([0-9]+)(?: ([0-9]+))?\z/a
            or $self->refused($line);
        $unique->{$name} = $number if $unique;
        my $bytes = $connection->block($length);
        $found{$name} = $flags == FLAG_JSON ? $JSON->decode($bytes) : $bytes;
    }
    return \%found;
}

# Returns what stands before all keys and tags of the site.
sub site_prefix {
    my $self = shift;
    my $site = $self->{site} // $Site // '';
    return length $site ? "$site:" : '';
}

sub name_of {
    my ($self, $key) = @_;
    my $name = $self->site_prefix . $self->{namespace} . ($key // '');
    die "a key has 1 to ${\ KEY_BYTES} bytes\n" if !length $name || length $name > KEY_BYTES;
    # The same holds for characters above ASCII, if they are characters and not bytes.
    die "a key has no spaces and control characters\n" if $name =~ /[\x00-\x20\x7F]/;
    return bytes($name);
}

sub check_options {
    my $option = shift;
    my @unknown = grep { $_ ne 'tags' } sort keys %$option or return;
    die "a page has the options ttl and tags, not @unknown\n";
}

sub tag_of {
    my ($self, $tag) = @_;
    $tag //= '';
    die "a tag has 1 to ${\ TAG_BYTES} bytes\n" if !length $tag || length $tag > TAG_BYTES;
    die "a tag has no spaces, commas and control characters\n" if $tag =~ /[\x00-\x20,\x7F]/;
    return bytes($self->site_prefix . $tag);
}

sub bytes {
    my $text = shift // '';
    utf8::downgrade($text, 1) or die "wide character: encode it before it is stored\n";
    return $text;
}

sub expiry {
    my $ttl = shift || 0;
    die "a time to live is a number of seconds: $ttl\n" if $ttl !~ /\A-?[0-9]+(?:\.[0-9]+)?\z/;
    return -1 if $ttl < 0;
    # It is rounded up, because 0 would mean that the item does not expire.
    my $seconds = int $ttl + ($ttl > int $ttl);
    return $seconds > RELATIVE_SECONDS ? time + $seconds : $seconds;
}

1;

__END__

=head1 NAME

Kirin::Store - pages, fragments and other data in Kirin's store

=head1 SYNOPSIS

    use Kirin::Store;
    my $store = Kirin::Store->new;    # finds the store in $ENV{KIRIN_STORE}

    # A page: the next GET of it needs no worker
    $store->set_page('/memo/7', 'text/html; charset=UTF-8', $html, ttl => 3600, tags => ['memo:7', 'user:42']);
    $store->purge('/memo/7');
    $store->purge(tags => ['user:42'], prefixes => ['/recent/'], keys => ['/']);

    # Data
    $store->set('fresh', { list => [1, 2, 3] }, 60);
    my $fresh = $store->get('fresh') // make_it();
    my $visits = $store->incr('visits');
    warn $store->error if !defined $visits;

=head1 DESCRIPTION

This is a client of Kirin's store in plain Perl. It also works with any other memcached if you use
no tags and prefixes. It connects at its first use, after a fork, and after a failure. So you can
make one object before workers are forked.

B<No method dies.> Methods that store or change return true when it is done. They return false,
defined, if the store says that it could do nothing (C<add> of an existing item, C<delete> of a
missing one). They return C<undef> after a failure, which C<error> then explains. A command is never
sent twice, so C<incr> counts at most once.

Values that are references are stored as JSON and come back as they were. Other values are bytes.
Text with characters above 255 must be encoded before. Bytes that another client has stored as
Storable or compressed come back unchanged.

=head1 METHODS

=over

=item new(address => ADDRESS, timeout => SECONDS, namespace => PREFIX, site => NAME)

C<address>: C<unix:PATH> or C<HOST:PORT>. The default is C<KIRIN_STORE> in the environment, which is
read at the first use. C<timeout>: the time limit for connecting and for each wait. The default is
1. After a timeout the client does not try again for a second. C<namespace>: a prefix for every key.

C<site>: the name of a site of Kirin's configuration. All keys and tags are then those of this site.
The default is the site of the request that the worker serves at the time of the call. Outside of
requests, and on hosts that belong to no C<[[site]]>, there is no site. C<< site => '' >> means no
site at any time (F<docs/store.md>).

=item error

Returns why the last call has failed, or C<undef> if it has not.

=item get(KEY), get_multi(KEY, ...)

C<get> returns the value, or C<undef>. C<get_multi> returns a reference to a hash with the existing
values.

=item gets(KEY)

Works as C<get>, and also returns the number for C<cas>: C<[NUMBER, VALUE]>.

=item cas(KEY, NUMBER, VALUE, TTL)

Works as C<set>, but only if the item is still the one that C<gets> has returned. Returns false if
it has been stored again, deleted or evicted.

=item set(KEY, VALUE, TTL, tags => [TAG, ...]), add, replace

TTL is in seconds. Without it, or with 0, the item does not expire. A TTL is always a duration,
however long it is. There may be up to 16 tags of 64 bytes.

=item delete(KEY), remove(KEY)

Deletes the item, as C<delete> of any memcached does. A cached response of a route for the path KEY
stays.

=item purge(KEY)

Is the same as C<< purge(keys => [KEY]) >>: it purges an item and cached responses. Returns whether
there was any. To be sure that a page is gone, call this and not C<delete>.

=item purge(keys => [KEY, ...], prefixes => [PREFIX, ...], tags => [TAG, ...], soft => 1)

Deletes everything that is named: items by their keys, items whose keys start with a prefix, and
items with a tag. With C<soft> they stay and are stale, so that Kirin still serves them while it
renews them (F<docs/purge.md>). Keys and prefixes that start with C</> also purge the cached
responses of routes (F<docs/cache.md>). A single name needs no array.

Returns for how many of the names there was an item (a prefix always counts), or C<undef>. Call it
after the change is committed, because a request that reads the old row before may be stored. Kirin
does not store a C<Kirin-Store> response after the purge that was started before it
(F<docs/pages.md>).

=item touch(KEY, TTL), incr(KEY, BY), decr(KEY, BY)

C<incr> and C<decr> return the new number. BY is 1 by default. C<decr> stops at 0.

=item set_page(TARGET, MEDIA-TYPE, BODY, ttl => TTL, tags => [TAG, ...])

Stores a page for the request target, which is path and query as the client sends them.
F<docs/pages.md> in Kirin's sources has the rules, also for includes. C<set_page(TARGET, MEDIA-TYPE,
BODY, TTL, tags => ...)> is the same.

=item set_page(TARGET, PSGI-RESPONSE, ttl => TTL, tags => [TAG, ...]), set_response

Does the same with your own status and headers. The body must be an array. Headers about the
connection and the framing are left out.

=item purge_tag(TAG, stale => 1), purge_prefix(PREFIX, stale => 1)

Deletes all items with a tag, or whose keys start with a prefix, however many there are. With
C<stale> it marks them instead (F<docs/memcached.md>). Tags have no namespace. Only Kirin knows
these commands. A memcached answers that there is no such item.

=back

=cut
