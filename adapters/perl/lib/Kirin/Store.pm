package Kirin::Store;
use v5.16;
use warnings;

use Carp ();
use MIME::Base64 ();
use Kirin::Store::Connection;
use Kirin::Worker;

our $VERSION = $Kirin::Worker::VERSION;

# What memcached clients have in the flags: 1 and 2 are Storable and compression in Cache::Memcached, 4 is UTF-8 in
# Cache::Memcached::Fast.
use constant FLAG_JSON => 8;

# A time to live above this is a point in time to memcached (doc/protocol.txt).
use constant RELATIVE_SECONDS => 60 * 60 * 24 * 30;

# Keys asked for with one line; it may have a megabyte.
use constant KEYS_A_LINE => 1000;

# Commands sent before their answers are read; these fit into the buffers of a socket.
use constant COMMANDS_AT_ONCE => 100;

# Bytes of a key before it is written in base64, which has KEY_BYTES at most.
use constant BASE64_KEY_BYTES => 186;

use constant { KEY_BYTES => 250, TAG_BYTES => 64, TAGS => 16 };

my $JSON = do {
    my ($class) = grep { eval "require $_" }
        qw(Cpanel::JSON::XS JSON::XS JSON::PP);    ## no critic: names from here
    $class->new->utf8->canonical->allow_nonref;
};

sub new {
    my ($class, %args) = @_;
    my $self = bless { timeout => 1, namespace => '', %args }, $class;
    if (my @unknown = grep { !/\A(?:address|timeout|namespace)\z/ } keys %args) {
        Carp::croak("Kirin::Store: unknown argument @unknown");
    }
    Carp::croak("Kirin::Store: timeout is a number of seconds above 0") if !($self->{timeout} > 0);
    return $self;
}

# Why the last call has failed, or undef if it has not.
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

# The number that cas wants, and the value.
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

# As set, if nobody has stored anything there since gets gave the number.
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

# The name that caches other than memcached have for it.
sub remove { my $self = shift; return $self->delete(@_) }

# Of one key; or of everything that is named. All of it is on its way before the first answer is waited for.
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
                    my $name = $kind eq 'tags' ? check_tag($_) : $self->name_of($_);
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

# What the cache of a route keeps for a target, or for all that begin with it (docs/cache.md). One that is too long to be named takes
# those with it that begin as it does.
sub cached_name {
    my ($target, $kind) = @_;
    return undef if $target !~ m{\A/};    ## no critic: one value
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

# Runs what may fail. Nothing that happens to the store is the application's end.
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

# A command of one line. True if it is answered as expected, false if the store says that there was nothing to do it to.
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

# After an error line the connection may hold anything: what was refused, for example.
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
            my $list = join ',', map { check_tag($_) } @$tags;
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

# The values of a retrieval, by their names in the store.
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

sub name_of {
    my ($self, $key) = @_;
    my $name = $self->{namespace} . ($key // '');
    die "a key has 1 to ${\ KEY_BYTES} bytes\n" if !length $name || length $name > KEY_BYTES;
    # Neither is anything above ASCII, if it is a character and not a byte of one.
    die "a key has no spaces and control characters\n" if $name =~ /[\x00-\x20\x7F]/;
    return bytes($name);
}

sub check_options {
    my $option = shift;
    my @unknown = grep { $_ ne 'tags' } sort keys %$option or return;
    die "a page has the options ttl and tags, not @unknown\n";
}

sub check_tag {
    my $tag = shift // '';
    die "a tag has 1 to ${\ TAG_BYTES} bytes\n" if !length $tag || length $tag > TAG_BYTES;
    die "a tag has no spaces, commas and control characters\n" if $tag =~ /[\x00-\x20,\x7F]/;
    return bytes($tag);
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
    # Rounded up: half a second is not for ever.
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

A client of Kirin's store in plain Perl, and of any other memcached as long as no tags and prefixes are used. It connects
when it is first used, after a fork, and after a failure, so that one object can be made before workers are forked.

B<No method dies.> What stores and changes returns true when it is done; false, defined, when the store has said that there
was nothing to do it to (C<add> of what is there, C<delete> of what is not); C<undef> when it has failed, which C<error> then
explains. A command is never sent twice, so that C<incr> counts once at most.

Values that are references are stored as JSON and come back as they were. Other values are bytes: what has characters above
255 must be encoded before. Bytes that another client has stored as Storable or compressed come back as they are stored.

=head1 METHODS

=over

=item new(address => ADDRESS, timeout => SECONDS, namespace => PREFIX)

C<address>: C<unix:PATH> or C<HOST:PORT>; default: C<KIRIN_STORE> in the environment, looked at when the store is first
used. C<timeout>: for connecting and for each wait; default: 1. After a failure by time there is no new try for a second.
C<namespace>: put before every key.

=item error

Why the last call has failed; C<undef> if it has not.

=item get(KEY), get_multi(KEY, ...)

The value, or C<undef>; a reference to a hash with those that are there.

=item gets(KEY)

As C<get>, with the number that C<cas> wants: C<[NUMBER, VALUE]>.

=item cas(KEY, NUMBER, VALUE, TTL)

As C<set>, but only if the item is still the one that C<gets> has given. False if it has been stored anew, deleted or evicted.

=item set(KEY, VALUE, TTL, tags => [TAG, ...]), add, replace

TTL in seconds; none or 0 is for ever. A TTL is a duration however long it is. Up to 16 tags of 64 bytes.

=item delete(KEY), remove(KEY)

Deletes the item, as C<delete> of any memcached does. What the cache of a route keeps for the path KEY stays.

=item purge(KEY)

The same as C<< purge(keys => [KEY]) >>, of an item and of what caches keep, and returns whether there was anything. To be
sure that a page is gone, call this and not C<delete>.

=item purge(keys => [KEY, ...], prefixes => [PREFIX, ...], tags => [TAG, ...], soft => 1)

Deletes everything that is named: items by their keys, those whose keys begin with a prefix, those that carry a tag. With C<soft> they stay and are stale,
so that they are served on while they are made anew (F<docs/purge.md>). Keys and prefixes that begin
with C</> are also those of what the caches of routes keep (F<docs/cache.md>). A single
name needs no array. Returns for how many of the names there was something (a prefix always counts), or C<undef>. Call it after
the change is committed: what reads the old row before that may be stored. An answer that Kirin stores by C<Kirin-Store> and that
was begun before is not stored after it (F<docs/pages.md>).

=item touch(KEY, TTL), incr(KEY, BY), decr(KEY, BY)

C<incr> and C<decr> return the new number. BY is 1 by default. C<decr> stops at 0.

=item set_page(TARGET, MEDIA-TYPE, BODY, ttl => TTL, tags => [TAG, ...])

A page for the request target, path and query as the client sends them. F<docs/pages.md> in Kirin's sources has the rules,
and those for includes. C<set_page(TARGET, MEDIA-TYPE, BODY, TTL, tags => ...)> is the same.

=item set_page(TARGET, PSGI-RESPONSE, ttl => TTL, tags => [TAG, ...]), set_response

The same with status and headers of one's own. The body must be an array. Headers about the connection and the framing are
left out.

=item purge_tag(TAG, stale => 1), purge_prefix(PREFIX, stale => 1)

Deletes all items with a tag, or whose keys begin with a prefix, however many these are; with C<stale> they are marked
instead (F<docs/memcached.md>). Tags have no namespace. Only Kirin has this; a memcached answers that there is nothing.

=back

=cut
