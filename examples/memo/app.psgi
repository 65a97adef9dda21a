# The memo site.
#
#   plackup examples/memo/app.psgi                      alone
#   kirin serve --config examples/memo/kirin.toml       behind Kirin
#
# MEMO_DATABASE  the SQLite file             (default: data/memo.sqlite beside this file)
# KIRIN_STORE    memcached address of the store, unix:PATH or HOST:PORT
#                (default: none, pages are not stored)
use v5.16;
use warnings;

use File::Basename qw(dirname);
use File::Spec ();

# PSGI loaders make __FILE__ relative to different directories. So it is made absolute before any
# directory change.
my $HERE;
BEGIN { $HERE = dirname(File::Spec->rel2abs(__FILE__)) }
use lib "$HERE/lib";

use Memo::App ();
use Plack::Builder;

my $memo = Memo::App->new(
    database  => $ENV{MEMO_DATABASE} || "$HERE/data/memo.sqlite",
    templates => "$HERE/templates",
    store     => $ENV{KIRIN_STORE} || undef,
);

builder {
    # Behind Kirin the files are found before the application is asked. This is only for plackup.
    enable 'Static', path => qr{\A/(?:memo\.css|favicon\.svg|robots\.txt)\z},
        root              => "$HERE/public";
    # HEAD is answered as GET, without the body.
    enable 'Head';
    $memo->to_app;
};
