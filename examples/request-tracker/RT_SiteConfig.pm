# The configuration of this Request Tracker. RT_Config.pm of the package has the defaults. The
# configuration in /etc/request-tracker5 is not used.
use utf8;
use File::Basename qw(dirname);

my $data = dirname(__FILE__) . '/data';

Set($rtname, 'example.org');
Set($Organization, 'example.org');

Set($WebDomain, '127.0.0.1');
Set($WebPort, 8080);

Set($DatabaseType, 'SQLite');
Set($DatabaseName, "$data/rt.sqlite");

# Compiled templates, sessions and mails.
our $VarPath = $data;
our $MasonDataDir = "$data/mason";
our $MasonSessionDir = "$data/sessions";

# Kirin's log has the warnings.
Set($LogToSTDERR, 'warning');
Set($LogToSyslog, undef);
Set($LogToFile, undef);

# This example sends no mail. What would be sent is in data/*.mbox.
Set($MailCommand, 'mbox');

1;
