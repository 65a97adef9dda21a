package Memo::Users;
use v5.16;
use warnings;
use utf8;

use Memo::Password ();

my $NAME = qr/\A [A-Za-z0-9] [A-Za-z0-9_-]{1,19} \z/x;
my $PASSWORD_SHORTEST = 8;
my $PASSWORD_LONGEST = 200;

sub new {
    my ($class, $database) = @_;
    return bless { database => $database }, $class;
}

# Creates the account. Returns (user, undef) or (undef, error message).
sub sign_up {
    my ($self, $name, $password) = @_;
    return (
        undef,
        'A name is 2 to 20 letters, digits, “-” or “_”, and starts with a letter or digit.'
    ) if $name !~ $NAME;
    return (undef, "A password is $PASSWORD_SHORTEST to $PASSWORD_LONGEST characters long.")
        if length $password < $PASSWORD_SHORTEST || length $password > $PASSWORD_LONGEST;
    return (undef, 'A password has no control characters.') if $password =~ /[[:cntrl:]]/;
    return $self->add($name, Memo::Password::hash($password), time)
        || (undef, "The name “$name” is taken.");
}

# Returns the new user, or nothing if the name is taken.
sub add {
    my ($self, $name, $password_hash, $created_at) = @_;
    my $handle = $self->{database}->handle;
    my $added = $handle->do(
        'INSERT INTO user (name, password_hash, created_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING',
        undef, $name, $password_hash, $created_at,
    );
    return if $added == 0;
    return { id => $handle->sqlite_last_insert_rowid, name => $name };
}

# Returns the user with this name and password, or nothing.
sub sign_in {
    my ($self, $name, $password) = @_;
    my $user = $self->{database}->handle->selectrow_hashref(
        'SELECT id, name, password_hash FROM user WHERE name = ?',
        undef, $name
    );
    my $right =
          length $password > $PASSWORD_LONGEST || $password =~ /\0/ ? 0
        : $user ? Memo::Password::matches($password, delete $user->{password_hash})
        : Memo::Password::matches_nobody($password);
    return $right ? $user : ();
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Users - accounts

=head1 SYNOPSIS

    my $users = Memo::Users->new($database);
    my ($user, $problem) = $users->sign_up('mari', 'long enough');
    $user = $users->sign_in('mari', 'long enough') or say 'no';

=cut
