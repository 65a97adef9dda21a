package RingTool;
use v5.16;
use warnings;

use Config ();
use File::Temp ();

# Compiles the programs of ../ring/t, which are fronts for tests.

use constant DIRECTORY => '../ring/t';

# Returns the path of a program, or nothing if it cannot be compiled here.
sub build {
    my ($class, $name) = @_;
    my @sources = map { DIRECTORY . "/$_.c" } $name, 'front';
    return if grep { !-e } @sources;
    # It is removed with this process.
    state $directory = File::Temp->newdir;
    my $program = "$directory/$name";
    return system("$Config::Config{cc} -O1 -o $program @sources") == 0 ? $program : undef;
}

1;
