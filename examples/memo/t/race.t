use v5.16;
use warnings;

use FindBin qw($Bin);
use lib "$Bin/lib";
use POSIX ();
use Test::More;
use TestMemcached;
use TestSite;

# Several workers post and read at the same time; whatever the order, no old page may stay in the
# store.

my $WRITERS = 2;
my $READERS = 2;
my $MEMOS_PER_WRITER = 40;

my $memcached = TestMemcached->new;
my $site = TestSite->new(store => $memcached->address, workers => $WRITERS + $READERS);
my ($first) = $site->add_public_memos(bea => 150);
my @members = map { $site->member("writer$_") } 1 .. $WRITERS;
my $done_file = $site->folder . '/done';
# As after loading: a prefork server's parent has no open handle (t/demo.t).
$site->app->database->close;

# Runs in a process of its own, with the application loaded before the fork, as prefork servers do
# it. Exits with the number of complaints.
sub in_child {
    my ($code) = @_;
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    my $complaints = eval { $code->() } // do { diag $@; 99 };
    POSIX::_exit($complaints);
}

sub finished {
    my ($pid, $name) = @_;
    waitpid $pid, 0;
    is $? >> 8, 0, $name;
    return;
}

my @writers = map {
    my $number = $_;
    in_child(
        sub {
            my $missing = 0;
            for my $turn (1 .. $MEMOS_PER_WRITER) {
                my $title = "Turn $turn of $number";
                $members[$number - 1]->write($title);
                # From memory if it is there, else from the application, as Kirin does it. The memo
                # is at once on the page.
                my $page = eval { $memcached->page('/') } // $site->visitor->get('/')->content;
                $missing++ if index($page, ">$title<") < 0;
            }
            return $missing;
        }
    );
} 1 .. $WRITERS;

my @readers = map {
    in_child(
        sub {
            my @paths = ('/', '/recent/0', '/recent/1', "/memo/$first");
            until (-e $done_file) {
                $site->visitor->get($_) for @paths;
            }
            return 0;
        }
    );
} 1 .. $READERS;

finished($_, 'each memo was on the front page when its writer had the answer') for @writers;
open my $done, '>', $done_file or die "$done_file: $!";
finished($_, 'a reader had an answer each time') for @readers;

is $site->app->memos->public_total, 150 + $WRITERS * $MEMOS_PER_WRITER, 'all memos were written';
my $fresh = TestSite->reference(folder => $site->folder)->visitor;
my $expected = sub { TestMemcached::without_blank_lines($fresh->get($_[0])->content) };

# Which pages are there depends on who came last: a purge may have been it.
my %items = $memcached->items;
for my $path (sort grep { m{\A/} } keys %items) {
    # With an include that is missing, Kirin does not serve a page from memory.
    my $page = eval { $memcached->page($path) } // next;
    is $page, $expected->($path), "$path in the store is what a fresh render gives";
}

# Now nobody writes any more.
for my $path ('/', '/recent/0', '/recent/1', "/memo/$first") {
    $site->visitor->get($path);
    is $memcached->page($path), $expected->($path),
        "$path is stored when it is asked for, and as a fresh render gives it";
}

done_testing;
