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
use TestServed ();
use TestVisitor ();

# Which application answers the requests of the tests: "perl" is that of this directory, "python" is
# ../memo-python, "ruby" is ../memo-ruby.
my $LANGUAGE = $ENV{MEMO_APP} || 'perl';
die "MEMO_APP is perl, python or ruby, and not $LANGUAGE\n"
    if !grep { $_ eq $LANGUAGE } 'perl', TestServed::languages();

sub language { return $LANGUAGE }
sub is_perl { return $LANGUAGE eq 'perl' }

# Why a test is for Perl only that looks into the application's process.
sub own_tests { return "examples/memo-$LANGUAGE has a test of its own for that" }

# A site of its own in a temporary folder; store => address of a memcached, if it is to have one;
# workers => number of worker processes, which the application in Perl does not have here.
sub new {
    my ($class, %given) = @_;
    my $self = $class->reference(%given);
    return $self if is_perl();
    $self->{served} = TestServed->new(
        language => $LANGUAGE,
        database => "$self->{folder}/memo.sqlite",
        store    => $given{store}, workers => $given{workers}
    );
    $self->{psgi} = $self->{served}->psgi;
    return $self;
}

# The same, always in Perl and in this process. Another application must make the same pages.
sub reference {
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

# The application in Perl. Behind it is the same database, whatever answers requests.
sub app { return $_[0]{app} }

# What answers requests.
sub psgi { return $_[0]{psgi} }

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
