use v5.16;
use warnings;

use FindBin qw($Bin);
use lib "$Bin/lib", "$Bin/../lib";
use File::Temp ();
use HTTP::Request::Common qw(GET HEAD);
use Memo::Database ();
use Plack::Test ();
use Plack::Util ();
use Test::More;
use TestSite;
use TestVisitor;

# seed.pl and the application's file as "make demo" uses them.

my $folder = File::Temp->newdir('memo-test-XXXXXXXX', TMPDIR => 1);

sub seed {
    my ($file, @options) = @_;
    local $ENV{MEMO_DATABASE} = "$folder/$file";
    open my $output, '-|', $^X, "$Bin/../seed.pl", @options or die "seed.pl: $!";
    my $said = do { local $/; <$output> };
    close $output or die "seed.pl failed: $?";
    return $said;
}

subtest 'the seeded memos are the same every time' => sub {
    like seed('memo.sqlite', '--memos', 400), qr/400 memos, 3\d\d of them public, by 30 authors/;
    seed('two.sqlite', '--memos', 400);
    my ($one, $two) = map {
        Memo::Database->new("$folder/$_")
            ->handle->selectall_arrayref('SELECT * FROM memo ORDER BY id')
    } 'memo.sqlite', 'two.sqlite';
    is_deeply $one, $two;
    like seed('memo.sqlite'), qr/there already/, 'and an existing database is left alone';
};

local $ENV{MEMO_DATABASE} = "$folder/memo.sqlite";
delete local $ENV{KIRIN_STORE};
my $served = TestSite::is_perl() ? undef : TestSite->new(folder => $folder);
my $psgi = $served ? $served->psgi : Plack::Util::load_psgi("$Bin/../app.psgi");

subtest 'after loading no database file is open, so workers may be forked' => sub {
    plan skip_all => TestSite::own_tests() if $served;
    my @open = grep { defined } map { readlink } glob '/proc/self/fd/*';
    ok scalar @open, 'there are open files to look at';
    is_deeply [grep { /one\.sqlite/ } @open], [];
};

subtest 'a worker opens the database itself, also after another process has' => sub {
    plan skip_all => 'behind Kirin only workers open it' if $served;
    my $visitor = TestVisitor->new($psgi);
    is $visitor->get('/')->code, 200;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        my $answer = $visitor->get('/recent/1');
        require POSIX;
        POSIX::_exit($answer->code == 200 ? 0 : 1);
    }
    waitpid $pid, 0;
    is $?, 0;
    is $visitor->get('/recent/2')->code, 200, 'and the first goes on';
};

subtest 'the demo account can sign in, the other authors cannot' => sub {
    my $visitor = TestVisitor->new($psgi);
    is $visitor->submit('/signin', '/signin', name => 'akira', password => $_)->code, 400
        for 'akira', '*', '';
    is $visitor->submit('/signin', '/signin', name => 'demo', password => 'demo')->code, 303;
    like $visitor->get('/mypage')->content, qr{<li>}, 'and has memos';
};

subtest 'every seeded memo can be shown' => sub {
    my $visitor = TestVisitor->new($psgi);
    my $shown = grep { $visitor->get("/memo/$_")->code == 200 } 1 .. 400;
    like $visitor->get('/')->content, qr{<strong id="total">$shown</strong>};
};

subtest 'HEAD has no body' => sub {
    my $test = Plack::Test->create($psgi);
    my $head = $test->request(HEAD '/');
    is $head->code, 200;
    is $head->content, '';
    is $head->header('Content-Length'), length $test->request(GET '/')->content;
};

subtest 'alone under plackup the files are served too' => sub {
    plan skip_all => 'behind Kirin the application is not asked for files' if $served;
    my $test = Plack::Test->create($psgi);
    is $test->request(GET '/memo.css')->header('Content-Type'), 'text/css; charset=utf-8';
    is $test->request(GET '/favicon.svg')->header('Content-Type'), 'image/svg+xml';
    is $test->request(GET '/../app.psgi')->code, 404;
};

done_testing;
