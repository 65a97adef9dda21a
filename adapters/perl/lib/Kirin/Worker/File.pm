package Kirin::Worker::File;
use v5.16;
use warnings;

use Cwd ();
use File::Spec;
use IO::Handle;
use Scalar::Util qw(reftype);

# Who loads this, which is before an application may become somebody else: the front's user.
my $user = $>;

# Of what stat gives: device, inode, size, times of the last changes of contents and of what is known of the file.
my @STATE = (0, 1, 7, 9, 10);

# Classes of handles by whether they do nothing of their own when they are read and closed.
my %is_plain;

# What the front must know to send the file behind $body in place of this worker, or nothing if only the worker can send it.
# $length is what the application says of the body's length; files below @$roots need not be handles.
sub behind {
    my ($body, $length, $roots) = @_;
    # The front may be allowed to read what this user may not.
    return if $> != $user;
    my $path = $body->path;
    return if !defined $path || $path eq '';
    # The bytes that Perl would give to the system.
    utf8::encode($path) if utf8::is_utf8($path);
    $path = File::Spec->rel2abs($path) if $path !~ m{\A/};
    # Could not stand in a field.
    return if $path =~ /[\x00-\x1F\x7F]| \z/;

    my $state = join ' ', (stat $path)[@STATE];
    return if !-f _ || defined $length && $length != (-s _ || 0);
    if ((reftype($body) // '') eq 'GLOB') {
        # Another file may have this name by now, or the path may be wrong.
        return if !gives_whole_file($body) || join(' ', (stat $body)[@STATE]) ne $state;
    }
    else {
        $path = Cwd::realpath($path) // return;
        return if !grep { index($path, $_ eq '/' ? '/' : "$_/") == 0 } @{ $roots // [] };
    }
    return "$state $path";
}

# Whether reading this handle to its end would give the bytes of the file, all and unchanged.
sub gives_whole_file {
    my $handle = shift;
    my $plain = $is_plain{ ref $handle } //= is_plain(ref $handle);
    return
           $plain
        && !tied *$handle
        && gives_bytes($handle)
        && tell($handle) == 0
        # Reading past Perl's buffer does not count for tell.
        && (sysseek($handle, 0, 1) // 1) eq '0 but true';
}

# Whether the bytes of the file come out as they are: not decoded, uncompressed or with other line ends.
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
C<Plack::Util::set_io_path>) need not go through the worker: C<behind> gives the value of C<Kirin-File>, with which the front
opens the file itself, or has it open. F<docs/worker-protocol.md> has its form.

It does so only if the front is sure to send what the worker would. The body is a handle that has not been read from, without a
layer that changes bytes, of a class that does nothing of its own; the path leads to the file that the handle is open on; and
C<Content-Length>, if there is one, is its size. Where the file lies does not matter then: the application has opened it. A
body that is no handle is believed if its file is below one of the directories in C<sendfile>. Whatever else has a C<path> is
sent by the worker.

=cut
