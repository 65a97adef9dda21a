use v5.16;
use warnings;

use File::Temp ();
use Memo::Database ();
use Test::More;

my $directory = File::Temp->newdir;

# A process of the site, as far as the database is concerned.
sub process {
    my $database = Memo::Database->new("$directory/memo.sqlite");
    $database->handle->sqlite_busy_timeout(20);
    return $database;
}

my ($one, $other) = map { process() } 1, 2;
$one->install_schema;

sub count { return $_[0]->handle->selectrow_array('SELECT COUNT(*) FROM user') }

sub add {
    my ($database, $name) = @_;
    return $database->exclusively(
        sub {
            $_[0]->do(
                q{INSERT INTO user (name, password_hash, created_at) VALUES (?, '', 0)},
                undef, $name
            );
        }
    );
}

subtest 'a process that did not get the lock does not take it with its next statement' => sub {
    $one->exclusively(
        sub {
            ok !eval { add($other, 'mari'); 1 }, 'the other one waits until its limit';
            like $@, qr/database is locked/, 'and says so';
        }
    );
    is count($other), 0, 'it reads';
    ok eval { add($one, 'bea'); 1 }, 'the first one writes' or diag $@;
    ok eval { add($other, 'mari'); 1 }, 'the other one writes now' or diag $@;
    is_deeply [map { count($_) } $one, $other], [2, 2], 'both have what was written';
};

subtest 'nothing stays of a transaction that has failed' => sub {
    ok !eval {
        $one->exclusively(sub { $_[0]->do('DELETE FROM user'); die "enough\n" });
        1;
    };
    is $@, "enough\n", 'its error is passed on';
    is_deeply [map { count($_) } $one, $other], [2, 2], 'nobody is gone';
    ok eval { add($other, 'zoe'); 1 }, 'the lock is free' or diag $@;
};

done_testing;
