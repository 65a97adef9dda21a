package TestMarkdown;
use v5.16;
use warnings;

use IPC::Open2 qw(open2);
use JSON::PP ();
use Memo::Markdown ();
use TestServed ();
use TestSite ();

# The functions of Memo::Markdown, in the language that MEMO_APP names.

my $JSON = JSON::PP->new->utf8->allow_nonref;
# Programs that call a function, their last argument, with JSON from standard input.
my %PROGRAM = (
    python => [
        qw(/usr/bin/python3 -B -c),
        'import json, sys; from memo import markdown;'
            . ' print(json.dumps(getattr(markdown, sys.argv[1])(json.load(sys.stdin))))'
    ],
    ruby => [
        qw(/usr/bin/ruby -Ilib -rjson -rmemo/markdown -e),
        'puts JSON.generate(Memo::Markdown.public_send(ARGV[0], JSON.parse(STDIN.read)))'
    ],
);

sub html { return TestSite::is_perl() ? Memo::Markdown::html($_[0]) : _run(html => $_[0]) }

sub title_and_excerpt {
    return TestSite::is_perl()
        ? Memo::Markdown::title_and_excerpt($_[0])
        : @{ _run(title_and_excerpt => $_[0]) };
}

sub _run {
    my ($function, $markdown) = @_;
    my $language = TestSite::language();
    my @program = @{ $PROGRAM{$language} };
    # It finds its own files from its folder.
    my $pid = open2(
        my $output, my $input, 'env', '-C', TestServed::application($language), @program,
        $function
    );
    print {$input} $JSON->encode($markdown);
    close $input or die "markdown: $!\n";
    my $answer = do { local $/; <$output> };
    waitpid $pid, 0;
    die "markdown in $language failed: $?\n" if $?;
    return $JSON->decode($answer);
}

1;
