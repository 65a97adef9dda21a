package Shop::Database;
use v5.16;
use warnings;

use DBI ();
use DBD::SQLite::Constants ();
use File::Basename qw(dirname);
use File::Spec ();

my $HERE = dirname(File::Spec->rel2abs(__FILE__));
my $FILE = $ENV{SHOP_DATABASE} || "$HERE/../../data/shop.sqlite";

my ($handle, $pid);

# Returns the handle of this process. It is opened at its first use, because a worker must not use
# a handle from before its fork.
sub handle {
    ($handle, $pid) = (_open(), $$) if !$handle || $pid != $$;
    return $handle;
}

# Runs the code in a transaction that may write, and returns what it returns. If the code dies,
# nothing has changed.
sub transaction {
    my ($code) = @_;
    my $dbh = handle();
    # "IMMEDIATE" takes the write lock first, so that nothing changes between reading and writing.
    $dbh->do('BEGIN IMMEDIATE');
    my $result = eval { $code->($dbh) };
    if (my $error = $@) {
        $dbh->do('ROLLBACK');
        die $error;
    }
    $dbh->do('COMMIT');
    return $result;
}

# Creates the tables and returns a handle with an open transaction. Returns nothing if they are
# there.
sub create {
    my ($schema) = @_;
    my $dbh = _open();
    return if $dbh->tables(undef, undef, 'product');
    open my $file, '<:encoding(UTF-8)', $schema or die "$schema: $!\n";
    my $sql = do { local $/ = undef; <$file> };
    $dbh->begin_work;
    $dbh->do($_) for grep { /\S/ } split /;/, $sql;
    return $dbh;
}

sub _open {
    my $dbh = DBI->connect(
        "dbi:SQLite:dbname=$FILE", '', '',
        {
            RaiseError          => 1,
            PrintError          => 0,
            AutoInactiveDestroy => 1,
            sqlite_string_mode  => DBD::SQLite::Constants::DBD_SQLITE_STRING_MODE_UNICODE_STRICT(),
        },
    );
    $dbh->do($_) for 'PRAGMA journal_mode = WAL', 'PRAGMA foreign_keys = ON';
    return $dbh;
}

1;

__END__

=encoding utf8

=head1 NAME

Shop::Database - the SQLite database of the shop

=head1 SYNOPSIS

    my $product = Shop::Database::handle()->selectrow_hashref('SELECT …');

=cut
