package Journal::View::HTML;
use Moose;
extends 'Catalyst::View::TT';

1;
