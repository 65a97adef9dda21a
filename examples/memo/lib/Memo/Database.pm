package Memo::Database;
use v5.16;
use warnings;

use DBI ();
use DBD::SQLite ();
use DBD::SQLite::Constants ();
use File::Basename qw(dirname);
use File::Spec ();
use Memo::Random ();

my $SCHEMA_FILE = File::Spec->catfile(dirname(__FILE__), '..', '..', 'schema.sql');
my $BUSY_TIMEOUT_MS = 5_000;

sub new {
    my ($class, $path) = @_;
    return bless { path => File::Spec->rel2abs($path), handle => undef, pid => 0 }, $class;
}

sub path { return $_[0]{path} }

# Returns the handle of *this* process, which is opened at its first use. SQLite's locks belong to
# the process that took them. So a child must not use a handle from before the fork, and not even
# close it (AutoInactiveDestroy prevents that).
sub handle {
    my ($self) = @_;
    return $self->{handle} if $self->{pid} == $$;
    $self->{handle} = $self->_open;
    $self->{pid} = $$;
    return $self->{handle};
}

# A parent that is about to fork calls this. SQLite keeps one list of the locks that this process
# has on a file, beside its handles. A child would inherit the list without the locks, and its own
# handle would then work unlocked:
# https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
sub close {
    my ($self) = @_;
    $self->{handle}->disconnect if $self->{handle} && $self->{pid} == $$;
    @{$self}{qw(handle pid)} = (undef, 0);
    return;
}

sub _open {
    my ($self) = @_;
    my $handle = DBI->connect(
        "dbi:SQLite:dbname=$self->{path}", '', '',
        {
            RaiseError          => 1,
            PrintError          => 0,
            AutoCommit          => 1,
            AutoInactiveDestroy => 1,
            sqlite_string_mode  => DBD::SQLite::Constants::DBD_SQLITE_STRING_MODE_UNICODE_STRICT(),
        },
    );
    $handle->sqlite_busy_timeout($BUSY_TIMEOUT_MS);
    # Readers do not wait for the writer, nor the writer for them. With WAL, NORMAL loses at most
    # the last commits when the machine (not the process) dies, and never corrupts:
    # https://www.sqlite.org/pragma.html#pragma_synchronous
    $handle->do('PRAGMA journal_mode = WAL');
    $handle->do('PRAGMA synchronous = NORMAL');
    $handle->do('PRAGMA foreign_keys = ON');
    return $handle;
}

# Creates the tables in an empty file. Returns whether it did.
sub install_schema {
    my ($self) = @_;
    return $self->exclusively(
        sub {
            my ($handle) = @_;
            return 0
                if $handle->selectrow_array(q{SELECT 1 FROM sqlite_master WHERE name = 'memo'});
            $handle->do($_) for _statements();
            my $insert = $handle->prepare('INSERT INTO setting (name, value) VALUES (?, ?)');
            $insert->execute(site_id  => Memo::Random::token());
            $insert->execute(csrf_key => Memo::Random::token());
            return 1;
        }
    );
}

sub _statements {
    open my $file, '<:encoding(UTF-8)', $SCHEMA_FILE or die "cannot read $SCHEMA_FILE: $!\n";
    my $sql = do { local $/; <$file> };
    $sql =~ s/--[^\n]*//g;
    return grep { /\S/ } split /;/, $sql;
}

sub setting {
    my ($self, $name) = @_;
    my ($value) =
        $self->handle->selectrow_array('SELECT value FROM setting WHERE name = ?', undef, $name);
    return $value // die "no setting $name in $self->{path}\n";
}

# Runs the code while no other process can commit. All reads see the newest state until the end.
sub exclusively { return $_[0]->_transaction('BEGIN IMMEDIATE', $_[1]) }

# Runs the code with all its reads from one state of the database.
sub snapshot { return $_[0]->_transaction('BEGIN DEFERRED', $_[1]) }

sub _transaction {
    my ($self, $begin, $code) = @_;
    my $handle = $self->handle;
    my $result;
    my $done =
        eval { $handle->do($begin); $result = $code->($handle); $handle->do('COMMIT'); 1 };
    if (!$done) {
        my $error = $@;
        # Also after a BEGIN that has failed: DBD::SQLite takes the handle to be in a transaction,
        # and would begin one with its next statement, a write lock that nobody gives back.
        eval { $handle->rollback };
        die $error;
    }
    return $result;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Database - the SQLite file, one handle a process

=head1 SYNOPSIS

    my $database = Memo::Database->new('data/memo.sqlite');
    $database->install_schema;
    my $names = $database->handle->selectcol_arrayref('SELECT name FROM user');
    $database->exclusively(sub { my ($handle) = @_; $handle->do('INSERT …') });

=cut
