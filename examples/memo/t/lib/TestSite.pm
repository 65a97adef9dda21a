package TestSite;
use v5.16;
use warnings;

use File::Basename qw(dirname);
use File::Spec ();
use File::Temp ();

my $HERE;
BEGIN { $HERE = dirname(File::Spec->rel2abs(__FILE__)) . '/../..' }
use lib "$HERE/lib";

use Memo::App ();
use TestVisitor ();

# A site of its own in a temporary folder; store => address of a memcached, if it is to have one.
sub new {
    my ($class, %given) = @_;
    my $folder = $given{folder} // File::Temp->newdir('memo-test-XXXXXXXX', TMPDIR => 1);
    local $SIG{__WARN__} = sub { warn @_ if $_[0] !~ /made an empty database/ };
    my $app = Memo::App->new(
        database => "$folder/memo.sqlite", templates => "$HERE/templates",
        store    => $given{store}
    );
    return bless { folder => $folder, app => $app, psgi => $app->to_app }, $class;
}

sub folder { return $_[0]{folder} }
sub app { return $_[0]{app} }

# Somebody with an empty cookie jar.
sub visitor { return TestVisitor->new($_[0]{psgi}) }

# A visitor with an account of this name.
sub member {
    my ($self, $name) = @_;
    my $visitor = $self->visitor;
    my $answer =
        $visitor->submit('/signup', '/signup', name => $name, password => "password of $name");
    die "sign up of $name: ", $answer->as_string if $answer->code != 303;
    return $visitor;
}

# An account and memos without the web in between; returns the memos' ids.
sub add_public_memos {
    my ($self, $author, $count) = @_;
    my $user = $self->app->users->add($author, '*', time);
    return
        map { $self->app->memos->create($user->{id}, "# $author $_\n\nText of $author $_.", 0) }
        1 .. $count;
}

1;
