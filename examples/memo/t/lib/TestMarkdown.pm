package TestMarkdown;
use v5.16;
use warnings;

use IPC::Open2 qw(open2);
use JSON::PP ();
use Memo::Markdown ();
use TestPython ();
use TestSite ();

# The functions of Memo::Markdown. With MEMO_APP=python they are those of memo.markdown.

my $JSON = JSON::PP->new->utf8->allow_nonref;
my $PROGRAM = 'import json, sys; from memo import markdown;'
    . ' print(json.dumps(getattr(markdown, sys.argv[1])(json.load(sys.stdin))))';

sub html { return TestSite::is_python() ? _python(html => $_[0]) : Memo::Markdown::html($_[0]) }

sub title_and_excerpt {
    return TestSite::is_python()
        ? @{ _python(title_and_excerpt => $_[0]) }
        : Memo::Markdown::title_and_excerpt($_[0]);
}

sub _python {
    my ($function, $markdown) = @_;
    local $ENV{PYTHONPATH} = $TestPython::APPLICATION;
    my $pid = open2(my $output, my $input, '/usr/bin/python3', '-B', '-c', $PROGRAM, $function);
    print {$input} $JSON->encode($markdown);
    close $input or die "markdown: $!\n";
    my $answer = do { local $/; <$output> };
    waitpid $pid, 0;
    die "markdown in Python failed: $?\n" if $?;
    return $JSON->decode($answer);
}

1;
