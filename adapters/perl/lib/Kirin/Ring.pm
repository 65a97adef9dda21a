package Kirin::Ring;
use v5.16;
use warnings;

use Config ();
use File::Basename ();
use XSLoader ();

our $VERSION = '0.001';

use constant SOURCES => qw(lib/Kirin/Ring.xs ../ring/kirin_ring.c ../ring/kirin_ring.h);

# The app parent loads it before the application, which may change @INC or the directory. The
# workers inherit it.
my $is_loaded = is_wanted() && load();

# Returns whether the compiled part is there and wanted.
sub is_available { return $is_loaded && is_wanted() }

sub is_wanted { return ($ENV{KIRIN_RING} // 1) ne '0' }

sub load {
    local @INC = (built_here() // (), @INC);
    local ($@, $SIG{__DIE__});
    return eval { XSLoader::load(__PACKAGE__, $VERSION); 1 } || 0;
}

# Returns the directory in the sources that has the compiled part. It names the Perl that the part
# was built for, since another Perl must not load it. A part that is older than its sources could
# have other functions.
sub built_here {
    my $root = File::Basename::dirname(__FILE__) . '/../..';
    my $arch = "$root/arch/$Config::Config{version}-$Config::Config{archname}";
    my $built = (stat "$arch/auto/Kirin/Ring/Ring.$Config::Config{dlext}")[9] // return;
    for my $source (map { "$root/$_" } SOURCES) {
        return if ((stat $source)[9] // 0) > $built;
    }
    return $arch;
}

# Another thread would free the memory a second time.
sub CLONE_SKIP { 1 }

1;

__END__

=head1 NAME

Kirin::Ring - requests and answers through memory that Kirin shares with its workers

=head1 SYNOPSIS

    my $ring = Kirin::Ring::is_available() && Kirin::Ring->attach(fileno $socket, getppid);
    $ring->set_always(['psgi.version' => [1, 1], ...]);
    my $env = $ring->take;
    $ring->begin;
    $ring->answer($app->($env), 0);

=head1 DESCRIPTION

This module is the only compiled part of the adapter. Without it, with another Perl than the one it
was built for, or with C<KIRIN_RING=0> in the environment, all requests go over sockets, and
everything else is the same. F<docs/worker-protocol.md> describes the ring, and F<adapters/ring> has
the part in C that other languages use too.

=head1 METHODS

=over

=item is_available()

Returns whether the compiled part can be used.

=item end_with_parent(PARENT, MILLISECONDS)

Lets this process outlive the process PARENT, which has forked it, by this time at most. It gets
TERM when PARENT ends, and KILL at the end of the time, whatever it does then.

=item attach(CLASS, FD, PARENT)

Returns the ring that the front offers on a connection after the greeting. Returns nothing if it
offers none; then the connection is served as without a ring. If C<$!> is EINTR, a signal has come
before the front has said anything. PARENT is the process id of the worker's parent. The worker gets
TERM when that process ends.

=item receive(FD, BUFFER, SIZE, DESCRIPTOR)

Reads up to SIZE bytes from a connection into BUFFER, and returns how many, as sysread does.
DESCRIPTOR gets the number of the descriptor that has come with them, -2 if one has come for which
this process has no number left, or undef.

=item set_always([NAME => VALUE, ...])

Sets what is the same in every environment. Each request gets its own copies.

=item take()

Waits for the next request and returns its environment, without C<psgi.input>. Returns 1 if the
request comes over the connection, 0 if the worker must leave, and nothing if a signal has come or
nothing has come for a minute.

=item body()

Returns the bytes of the request's body.

=item begin()

Says that the application sees the request from now on.

=item answer(RESPONSE, LEAVING)

Answers with a response whose parts are plain: strings and numbers, in arrays, with a status that
has a body. Returns false, and has done nothing, for any other.

=item answer_bytes(BYTES, CLEANS_UP)

Answers with bytes that L<Kirin::Worker::Response> has made. Returns false, and has done nothing, if
they are too long or the answer has begun already.

=item has_request()

Returns whether the request waits for its answer, and this is not a forked process.

=item over_connection()

Says that the answer comes over the connection. Returns whether it may be written there: the request
has no answer yet, and this is not a forked process.

=item cleaned_up()

Says that the cleanup after the answer is done.

=back

=cut
