use v5.16;
use warnings;
use File::Temp ();
use IO::File;
use Kirin::Worker::File;
use Plack::Util;
use Test::More;

package Reading {
    our @ISA = 'IO::Handle';
    our $path;
    sub path { $path }
    sub getline { uc $_[0]->SUPER::getline }
}

package Closing {
    our @ISA = 'IO::Handle';
    our $path;
    sub path { $path }
    sub close { unlink $path }
}

package Ending {
    our @ISA = 'IO::Handle';
    our $path;
    sub path { $path }
    sub DESTROY { unlink $path }
}

package Tied {
    sub TIEHANDLE { bless [] }
    sub READLINE { }
    sub FILENO { 3 }
    sub TELL { 0 }
    sub SEEK { 1 }
}

package Object {
    sub new { bless { path => $_[1] } }
    sub path { $_[0]{path} }
}

package main;

my $directory = File::Temp->newdir;
my $path = write_file('file', 'contents');
my $state = join ' ', (stat $path)[0, 1, 7, 9, 10];

sub write_file {
    my ($name, $text) = @_;
    open my $file, '>', "$directory/$name" or die $!;
    print {$file} $text;
    close $file;
    "$directory/$name";
}

# Returns a handle on $path whose path method returns $says.
sub handle {
    my ($path, $says, $layer) = @_;
    open my $handle, '<' . ($layer // ':raw'), $path or die "$path: $!";
    Plack::Util::set_io_path($handle, $says // $path);
    return $handle;
}

sub behind { Kirin::Worker::File::behind(@_) }

is behind(handle($path)), "$state $path", 'what tells the file from others, and its path';
is behind(handle($path), 8), "$state $path", 'with its length';
is behind(handle($path), 7), undef, 'with another length';
symlink $path, "$directory/link" or die $!;
is behind(handle($path, "$directory/link")), "$state $directory/link", 'by a link to it';
is behind(
    handle(
        $path,
        do { my $upgraded = $path; utf8::upgrade($upgraded); $upgraded }
    )
    ),
    "$state $path",
    'an upgraded path';
{
    chdir $directory or die $!;
    is behind(handle($path, 'file')), "$state " . Cwd::getcwd() . '/file', 'a relative path';
    chdir '/';
}
my $kanji = "$directory/\x{9e92}";
utf8::encode(my $bytes = $kanji);
write_file("\xe9\xba\x92", 'kirin');
is behind(handle($kanji)), join(' ', (stat $kanji)[0, 1, 7, 9, 10], $bytes),
    'a path of characters is sent as bytes';
write_file('a b', 'contents');
like behind(handle("$directory/a b")), qr/ \Q$directory\E\/a b\z/, 'a path with a space in it';

my %nothing = (
    'another file'        => sub { handle($path, write_file('other', 'contents')) },
    'no file'             => sub { handle($path, "$directory/none") },
    'a directory'         => sub { handle($path, "$directory") },
    'no path'             => sub { my $handle = handle($path); $handle->path(undef); $handle },
    'an empty path'       => sub { handle($path, '') },
    'a line end'          => sub { handle(write_file("a\nb", '')) },
    'a NUL'               => sub { no warnings; handle($path, "$path\0") },
    'a space at the end'  => sub { handle(write_file('a ', '')) },
    'a file that is gone' =>
        sub { my $handle = handle(write_file('gone', '')); unlink "$directory/gone"; $handle },
    'read from'                   => sub { my $handle = handle($path); getc $handle; $handle },
    'read from behind the buffer' =>
        sub { my $handle = handle($path); sysread $handle, my $byte, 1; $handle },
    'read ahead'      => sub { my $handle = handle($path); my $end = eof $handle; $handle },
    'decoding'        => sub { handle($path, $path, ':encoding(UTF-8)') },
    'utf8'            => sub { handle($path, $path, ':utf8') },
    'other line ends' => sub { handle($path, $path, ':crlf') },
    'memory'          => sub {
        open my $handle, '<', \'contents' or die $!;
        Plack::Util::set_io_path($handle, $path);
        $handle;
    },
    'closed'   => sub { my $handle = handle($path); close $handle; $handle },
    'tied'     => sub { my $handle = handle($path); tie *$handle, 'Tied'; $handle },
    'a pipe'   => sub { pipe my $in, my $out or die $!; Plack::Util::set_io_path($in, $path); $in },
    'a device' => sub { handle('/dev/null') },
    'an object' => sub { Object->new($path) },
    map {
        my $class = $_;
        $class => sub {
            no strict 'refs';
            ${"${class}::path"} = write_file($class, '');
            bless handle("$directory/$class"), $class;
        }
    } qw(Reading Closing Ending),
);
for my $what (sort keys %nothing) {
    my $body = $nothing{$what}->();
    is behind($body), undef, "$what: the worker sends it";
}

subtest 'an object is believed below the directories that are allowed' => sub {
    my $real = Cwd::realpath($directory);
    my $object = Object->new("$directory/link");
    is behind($object, undef, [$real]), "$state $real/file", 'the path is resolved';
    is behind($object, 8, ['/nowhere', $real]), "$state $real/file", 'the second of them';
    is behind($object, undef, ['/']), "$state $real/file", 'the root';
    is behind($object, undef, ["$real/fil", "$real/file", '/nowhere']), undef, 'elsewhere';
    is behind($object, undef, []), undef, 'nowhere';
};

SKIP: {
    skip 'only root can become somebody else', 1 if $> != 0;
    my $handle = handle($path);
    local $> = 65534;
    is behind($handle), undef, 'somebody else than the front keeps what he has opened';
}

my $handle = handle($path);
behind($handle);
is join('', <$handle>), 'contents', 'a handle that was looked at is as it was';

done_testing;
