#!/usr/bin/env perl
# As `dancer2 gen` writes it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use Notes;

Notes->to_app;
