# As `catalyst.pl` writes it.
use strict;
use warnings;

use Journal;

my $app = Journal->apply_default_middlewares(Journal->psgi_app);
$app;
