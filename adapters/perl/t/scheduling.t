use v5.16;
use warnings;
use Kirin::Worker::Scheduling;
use POSIX ();
use Test::More;

# Returns the policy of this process: field 41 of proc(5)'s stat, counted behind the command's
# parenthesis.
sub policy {
    open my $file, '<', '/proc/self/stat' or die "stat: $!";
    my ($fields) = readline($file) =~ /\A.*\) (.*)/;
    return (split ' ', $fields)[38];
}

my $SCHED_BATCH = 3;

plan skip_all => 'no system call number for this architecture'
    if (POSIX::uname())[4] !~ /\A(?:x86_64|aarch64)\z/;

isnt policy(), $SCHED_BATCH, 'an ordinary process at first';
ok Kirin::Worker::Scheduling::give_way(), 'the kernel took it';
is policy(), $SCHED_BATCH, 'a batch process then';

done_testing;
