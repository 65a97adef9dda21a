# Request Tracker, as Debian has installed it, with the configuration of this directory.
use v5.16;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Plack::Util ();

my $here = dirname(abs_path(__FILE__));
$ENV{RT_SITE_CONFIG} = "$here/RT_SiteConfig.pm";
$ENV{RT_SITE_CONFIG_DIR} = "$here/data";

# Debian's program returns the application if it does not run as the main program.
Plack::Util::load_psgi('/usr/share/request-tracker5/libexec/rt-server');
