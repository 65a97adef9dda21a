use v5.16;
use warnings;

use Config ();
use File::Basename qw(dirname);
use File::Temp ();
use Test::More;

# Compiles the library strictly, and runs its tests with many workers.

chdir dirname(__FILE__) or die $!;
my $cc = $Config::Config{cc};
plan skip_all => "$cc is not there" if system "command -v $cc >/dev/null";

my $directory = File::Temp->newdir;
my @strict = qw(-std=c11 -Wall -Wextra -Werror -pedantic -O2);

# Nobody sleeps less than an hour, so that a worker that nobody wakes is found.
my @patient = '-DMAX_SLEEP=3600';

is system($cc, @strict, '-c', '../kirin_ring.c', '-o', "$directory/library.o"), 0, 'the library';
for my $program (qw(relay slot)) {
    is system($cc, @strict, "$program.c", 'front.c', '-o', "$directory/$program"), 0, $program;
}

# In this one each worker wakes the next, however fast it is.
run('wakeups', 3000, $_, '-DFAST_NS=1') for 1 .. 2;
run('stress', 20_000, $_) for 1 .. 3;
run('stress', 10_000, 4, '-DFAST_NS=1');
run('refuse');

sub run {
    my ($name, $count, $seed, @options) = @_;
    my @files = ("$name.c", 'front.c', '../kirin_ring.c');
    my $program = "$directory/$name";
    is system($cc, @strict, @patient, @options, @files, '-o', $program), 0, "$name is compiled"
        or return;
    my $said = join ' ', "$program", $count // (), $seed // ();
    my $output = qx($said 2>&1);
    is $?, 0, "$name: $output" or diag $output;
}

done_testing;
