use v5.16;
use warnings;
use lib 't/lib';
use Kirin::Ring;
use RingTool;
use Test::More;

# Runs the tests that have a front of their own once more, with workers that get their requests
# through a ring.

plan skip_all => 'this is such a run' if $ENV{KIRIN_TEST_RING};
plan skip_all => 'the compiled part is not there' if !Kirin::Ring::is_available();
my $relay = RingTool->build('relay') or plan skip_all => 'the relay cannot be compiled';
local $ENV{KIRIN_TEST_RING} = $relay;

for my $file (sort glob 't/*.t') {
    open my $test, '<', $file or die "$file: $!\n";
    next if !grep { /^use FakeFront;/ } readline $test;
    my $output = qx($^X -Ilib $file 2>&1);
    is $?, 0, $file or diag $output;
}

done_testing;
