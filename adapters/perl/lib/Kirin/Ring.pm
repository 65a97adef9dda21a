package Kirin::Ring;
use v5.16;
use warnings;

use Config ();
use File::Basename ();
use XSLoader ();

our $VERSION = '0.001';

my $is_loaded;

# Returns whether the compiled part is there and wanted.
sub is_available {
    return 0 if ($ENV{KIRIN_RING} // 1) eq '0';
    return $is_loaded //= load();
}

# In the sources the compiled part is in a directory that names the Perl it was built for. Another
# Perl must not load it.
sub load {
    my $root = File::Basename::dirname(__FILE__) . '/../..';
    local @INC = ("$root/arch/$Config::Config{version}-$Config::Config{archname}", @INC);
    local $@;
    return eval { XSLoader::load(__PACKAGE__, $VERSION); 1 } || 0;
}

1;

__END__

=head1 NAME

Kirin::Ring - requests and answers through memory that Kirin shares with its workers

=head1 SYNOPSIS

    my $ring = Kirin::Ring::is_available() && Kirin::Ring->attach(fileno $socket);
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

=item attach(CLASS, FD)

Returns the ring that the front offers on a connection after the greeting. Returns nothing if it
offers none; then the connection is served as without a ring.

=item set_always([NAME => VALUE, ...])

Sets what is the same in every environment. Each request gets its own copies.

=item take()

Waits for the next request and returns its environment, without C<psgi.input>. Returns 1 if the
request comes over the connection, 0 if the worker must leave, and nothing if a signal has come.

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

Says that the answer comes over the connection.

=item cleaned_up()

Says that the cleanup after the answer is done.

=back

=cut
