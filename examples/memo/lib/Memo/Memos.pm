package Memo::Memos;
use v5.16;
use warnings;

use Memo::Markdown ();

our $PER_PAGE = 100;

my $LISTED =
    'memo.id, memo.title, memo.excerpt, memo.created_at, memo.public_number, user.name AS author';
my $NEWEST_COUNT = 8;

sub new {
    my ($class, $database) = @_;
    return bless { database => $database }, $class;
}

# Creates a memo. Returns its id. "before_commit" (code, or none) runs when no other process can
# write.
sub create {
    my ($self, $user_id, $content, $is_private, $before_commit) = @_;
    my ($title, $excerpt) = Memo::Markdown::title_and_excerpt($content);
    return $self->{database}->exclusively(
        sub {
            $before_commit->() if $before_commit;
            return $self->insert(
                {
                    user_id       => $user_id,
                    title         => $title,
                    excerpt       => $excerpt,
                    content       => $content,
                    public_number => $is_private ? undef : $self->public_total + 1,
                    created_at    => time,
                }
            );
        }
    );
}

# This runs inside an exclusive transaction. So the public numbers have no gap.
sub insert {
    my ($self, $memo) = @_;
    my $handle = $self->{database}->handle;
    $handle->prepare_cached(
        'INSERT INTO memo (user_id, title, excerpt, content, public_number, created_at) VALUES (?, ?, ?, ?, ?, ?)'
    )->execute(@{$memo}{qw(user_id title excerpt content public_number created_at)});
    return $handle->sqlite_last_insert_rowid;
}

sub find {
    my ($self, $id) = @_;
    return $self->_row(
        'SELECT memo.id, memo.user_id, memo.title, memo.content, memo.created_at, memo.public_number,
                user.name AS author
           FROM memo JOIN user ON user.id = memo.user_id WHERE memo.id = ?', $id
    );
}

# Returns the number of public memos. It is also the version of every public page, because nothing
# else changes them.
sub public_total {
    my ($self) = @_;
    return $self->_value('SELECT MAX(public_number) FROM memo') // 0;
}

# Returns the public memos of a page of $PER_PAGE, newest first. Page 0 is the newest.
sub public_page {
    my ($self, $page) = @_;
    my $newest = $self->public_total - $page * $PER_PAGE;
    return $self->_rows(
        "SELECT $LISTED FROM memo JOIN user ON user.id = memo.user_id
          WHERE memo.public_number BETWEEN ? AND ? ORDER BY memo.public_number DESC",
        $newest - $PER_PAGE + 1, $newest
    );
}

# Returns the number of the last page that has a memo.
sub last_page {
    my ($self) = @_;
    my $total = $self->public_total;
    return $total == 0 ? 0 : int(($total - 1) / $PER_PAGE);
}

sub newest {
    my ($self) = @_;
    return $self->_rows(
        "SELECT $LISTED FROM memo JOIN user ON user.id = memo.user_id
          WHERE memo.public_number > ? ORDER BY memo.public_number DESC",
        $self->public_total - $NEWEST_COUNT
    );
}

sub of_user {
    my ($self, $user_id) = @_;
    return $self->_rows(
        "SELECT $LISTED FROM memo JOIN user ON user.id = memo.user_id WHERE memo.user_id = ? ORDER BY memo.id DESC",
        $user_id
    );
}

# Returns the ids of the same author's public memos before and after this one.
sub public_neighbours {
    my ($self, $memo) = @_;
    return {
        older => scalar $self->_value(
            'SELECT id FROM memo WHERE user_id = ? AND public_number < ? ORDER BY public_number DESC LIMIT 1',
            @{$memo}{qw(user_id public_number)}
        ),
        newer => scalar $self->_value(
            'SELECT id FROM memo WHERE user_id = ? AND public_number > ? ORDER BY public_number LIMIT 1',
            @{$memo}{qw(user_id public_number)}
        ),
    };
}

# Returns the ids of all the author's memos before and after this one. Only the author may see them.
sub all_neighbours {
    my ($self, $memo) = @_;
    return {
        older => scalar $self->_value(
            'SELECT id FROM memo WHERE user_id = ? AND id < ? ORDER BY id DESC LIMIT 1',
            @{$memo}{qw(user_id id)}
        ),
        newer => scalar $self->_value(
            'SELECT id FROM memo WHERE user_id = ? AND id > ? ORDER BY id LIMIT 1',
            @{$memo}{qw(user_id id)}
        ),
    };
}

# Returns the ids of memos whose page has changed since there were $number public memos. These are
# the new ones, and for each new one its author's previous memo, which now has a newer neighbour.
sub ids_touched_since {
    my ($self, $number) = @_;
    my %ids;
    for my $memo (
        @{
            $self->_rows(
                'SELECT id, user_id, public_number FROM memo WHERE public_number > ?', $number
            )
        }
        )
    {
        $ids{ $memo->{id} } = 1;
        my $older = $self->public_neighbours($memo)->{older};
        $ids{$older} = 1 if defined $older;
    }
    return keys %ids;
}

# Returns the ids of an author's memos: the public ones and the private ones, ascending.
sub ids_of_author {
    my ($self, $user_id) = @_;
    my (@public, @private);
    for my $memo (
        @{
            $self->_rows(
                'SELECT id, public_number FROM memo WHERE user_id = ? ORDER BY id', $user_id
            )
        }
        )
    {
        push @{ defined $memo->{public_number} ? \@public : \@private }, $memo->{id};
    }
    return (\@public, \@private);
}

sub private_ids {
    my ($self) = @_;
    return map { $_->{id} } @{ $self->_rows('SELECT id FROM memo WHERE public_number IS NULL') };
}

sub author_ids {
    my ($self) = @_;
    return map { $_->{id} } @{ $self->_rows('SELECT DISTINCT user_id AS id FROM memo') };
}

sub public_ids {
    my ($self) = @_;
    return
        map { $_->{id} } @{ $self->_rows('SELECT id FROM memo WHERE public_number IS NOT NULL') };
}

sub _statement {
    my ($self, $sql, @values) = @_;
    my $statement = $self->{database}->handle->prepare_cached($sql);
    $statement->execute(@values);
    return $statement;
}

sub _rows { return &_statement->fetchall_arrayref({}) }

sub _row {
    my $statement = &_statement;
    my $row = $statement->fetchrow_hashref;
    $statement->finish;
    return $row;
}

sub _value {
    my $statement = &_statement;
    my ($value) = $statement->fetchrow_array;
    $statement->finish;
    return $value;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Memos - the memos: write one, find one, list them

=head1 SYNOPSIS

    my $memos = Memo::Memos->new($database);
    my $id    = $memos->create($user->{id}, "# Tea\n\nGreen, 70 °C", 0);
    my $memo  = $memos->find($id);
    say $_->{title} for @{ $memos->public_page(0) };

=cut
