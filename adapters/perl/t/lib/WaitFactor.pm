package WaitFactor;
use v5.16;
use warnings;

use Exporter qw(import);

our @EXPORT_OK = qw(patient);

# The times that tests wait for something that must happen.
#
#     alarm patient(60);

# Returns a number of seconds, or of looks, that is larger on slow machines.
sub patient { int($_[0] * ($ENV{KIRIN_TEST_WAIT_FACTOR} || 1)) || 1 }

1;
