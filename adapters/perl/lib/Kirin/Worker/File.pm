package Kirin::Worker::File;
use v5.16;
use warnings;

use Cwd ();
use File::Spec;
use IO::Handle;
use Scalar::Util qw(reftype);

# The user that loads this module, before an application may change the user. It is the front's
# user.
my $user = $>;

# Indexes in the result of stat: device, inode, size, times of the last changes of contents and of
# metadata.
my @STATE = (0, 1, 7, 9, 10);

# Classes of handles, and whether they do nothing of their own when they are read and closed.
my %is_plain;

# Returns the value with which the front can send the file behind $body in place of this worker.
# Returns nothing if only the worker can send it. $length is the application's length of the body.
# Files below @$roots need not be handles.
sub behind {
    my ($body, $length, $roots) = @_;
    # The front may be allowed to read files that this user may not.
    return if $> != $user;
    my $path = $body->path;
    return if !defined $path || $path eq '';
    # These are the bytes that Perl would give to the system.
    utf8::encode($path) if utf8::is_utf8($path);
    $path = File::Spec->rel2abs($path) if $path !~ m{\A/};
    # Such a path cannot be in a field.
    return if $path =~ /[\x00-\x1F\x7F]| \z/;

    my $state = join ' ', (stat $path)[@STATE];
    return if !-f _ || defined $length && $length != (-s _ || 0);
    if ((reftype($body) // '') eq 'GLOB') {
        # Another file may have this name now, or the path may be wrong.
        return if !gives_whole_file($body) || join(' ', (stat $body)[@STATE]) ne $state;
    }
    else {
        $path = Cwd::realpath($path) // return;
        return if !grep { index($path, $_ eq '/' ? '/' : "$_/") == 0 } @{ $roots // [] };
    }
    return "$state $path";
}

# Returns whether reading this handle to its end would give exactly the bytes of the file.
sub gives_whole_file {
    my $handle = shift;
    my $plain = $is_plain{ ref $handle } //= is_plain(ref $handle);
    return
           $plain
        && !tied *$handle
        && gives_bytes($handle)
        && tell($handle) == 0
        # tell does not count bytes that were read past Perl's buffer.
        && (sysseek($handle, 0, 1) // 1) eq '0 but true';
}

# Returns whether reading gives the bytes of the file unchanged: not decoded, not decompressed and
# with the same line ends.
sub gives_bytes { join(' ', PerlIO::get_layers($_[0])) eq 'unix perlio' }

sub is_plain {
    my $class = shift;
    for my $method (qw(getline close DESTROY)) {
        my $own = $class->can($method) // return 0;
        return 0 if $own != IO::Handle->can($method);
    }
    return 1;
}

1;

__END__

=head1 NAME

Kirin::Worker::File - finds the file behind a body, for the front to send

=head1 SYNOPSIS

    my $file = Kirin::Worker::File::behind($body, $content_length, \@roots);

=head1 DESCRIPTION

A body with a C<path> (L<Plack::App::File>, L<Plack::Middleware::Static>, L<IO::File::WithPath>,
C<Plack::Util::set_io_path>) need not go through the worker. C<behind> returns the value of
C<Kirin-File>, with which the front opens the file itself, or has it open already.
F<docs/worker-protocol.md> has its form.

It does so only if the front is certain to send the same bytes as the worker. The body is a handle
that has not been read from. It has no layer that changes bytes, and its class does nothing of its
own. The path leads to the file that the handle has open. C<Content-Length>, if there is one, is its
size. The location of the file does not matter then, because the application has opened it.

A body that is not a handle is accepted if its file is below one of the directories in C<sendfile>.
The worker sends every other body with a C<path>.

=cut
