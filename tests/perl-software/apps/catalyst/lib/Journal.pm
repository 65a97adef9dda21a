package Journal;
# A Catalyst application in the style of Catalyst's tutorial. It knows nothing about its server.
use Moose;
use namespace::autoclean;

use Catalyst::Runtime 5.90;
use Catalyst qw(Static::Simple Session Session::State::Cookie Session::Store::File);

extends 'Catalyst';

__PACKAGE__->config(
    name                                        => 'Journal',
    encoding                                    => 'UTF-8',
    enable_catalyst_header                      => 1,
    disable_component_resolution_regex_fallback => 1,
    'Plugin::Session'        => { storage => $ENV{JOURNAL_SESSIONS}, cookie_name => 'journal' },
    'Plugin::Static::Simple' => { dirs    => ['static'] },
    'View::HTML'             => { TEMPLATE_EXTENSION => '.tt', ENCODING => 'UTF-8' },
);

__PACKAGE__->setup;

1;
