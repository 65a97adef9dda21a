package MojoAtKirin;
use v5.16;
use warnings;

use Mojo::URL;
use Mojo::UserAgent::Server;

# Makes Test::Mojo, and so the tests of any Mojolicious application, use a running server:
#
#     KIRIN_URL=http://127.0.0.1:8080 prove -MMojoAtKirin t

no warnings 'redefine';
*Mojo::UserAgent::Server::url = *Mojo::UserAgent::Server::nb_url =
    sub { Mojo::URL->new($ENV{KIRIN_URL}) };

1;
