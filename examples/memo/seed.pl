#!/usr/bin/perl
# Makes the demonstration database: 30 authors and some thousand memos, always the same ones.
#
#   perl seed.pl [--memos 3000] [--force]
#
# The file is MEMO_DATABASE, or data/memo.sqlite beside this script. The script does not change an
# existing file without --force.
# One account can be signed in to: name demo, password demo.
use v5.16;
use warnings;

use File::Basename qw(dirname);
use File::Spec ();
use Getopt::Long qw(GetOptions);

my $HERE;
BEGIN { $HERE = dirname(File::Spec->rel2abs(__FILE__)) }
use lib "$HERE/lib";

use Memo::Database ();
use Memo::Markdown ();
use Memo::Memos ();
use Memo::Password ();
use Memo::SampleText ();
use Memo::Users ();

my $RANDOM_SEED = 20131013;
my $NEWEST_AT = 1_761_955_200;    # 2025-11-01; fixed, so that two seeded databases are the same
my $MINUTES_APART = 55;
my $PRIVATE_OF_100 = 15;
my $NO_PASSWORD_HASH = '*';       # matches nothing

GetOptions('memos=i' => \(my $memo_count = 3_000), force => \my $force)
    or die "usage: perl seed.pl [--memos N] [--force]\n";

my $path = $ENV{MEMO_DATABASE} || "$HERE/data/memo.sqlite";
if (-e $path) {
    if (!$force) {
        say "$path is there already; --force makes it again";
        exit 0;
    }
    unlink grep { -e } map { "$path$_" } '', '-wal', '-shm' or die "cannot remove $path: $!\n";
}

my $database = Memo::Database->new($path);
my $memos = Memo::Memos->new($database);
my $users = Memo::Users->new($database);

$database->install_schema;
srand $RANDOM_SEED;
my $public_count = 0;
$database->exclusively(
    sub {
        my $first_at = $NEWEST_AT - $memo_count * $MINUTES_APART * 60;
        my @authors = map {
            $users->add(
                $_, $_ eq 'demo' ? Memo::Password::hash('demo') : $NO_PASSWORD_HASH,
                $first_at
            )
        } @Memo::SampleText::AUTHORS;
        for my $number (1 .. $memo_count) {
            my $content = Memo::SampleText::memo();
            my ($title, $excerpt) = Memo::Markdown::title_and_excerpt($content);
            my $is_private = rand 100 < $PRIVATE_OF_100;
            $memos->insert(
                {
                    user_id       => $authors[rand @authors]{id},
                    title         => $title,
                    excerpt       => $excerpt,
                    content       => $content,
                    public_number => $is_private ? undef : ++$public_count,
                    created_at    => $first_at + int(($number - rand) * $MINUTES_APART * 60),
                }
            );
        }
    }
);
$database->close;
say "$path: $memo_count memos, $public_count of them public, by "
    . @Memo::SampleText::AUTHORS
    . ' authors';
