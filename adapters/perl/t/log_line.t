use v5.16;
use warnings;

use File::Temp ();
use Kirin::Log;
use Test::More;

# Returns what a line of the log is, without its time.
sub logged {
    my ($text) = @_;
    my $file = File::Temp->new;
    open my $before, '>&', \*STDERR or die $!;
    open STDERR, '>>', $file->filename or die $!;
    Kirin::Log::keep();
    Kirin::Log::line($text);
    open STDERR, '>&', $before or die $!;
    Kirin::Log::keep();
    local $/ = undef;
    my $line = <$file>;
    $line =~ s/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z //;
    return $line;
}

subtest 'the text of a visitor forges no line and controls no terminal' => sub {
    is logged("no user \e]0;x\a\n2026-01-01T00:00:00Z  INFO forged\n"),
        "no user ?]0;x?\n  2026-01-01T00:00:00Z  INFO forged\n";
    is logged("a\rb"), "a?b\n";
};

subtest 'stacks and letters stay as they are' => sub {
    is logged("died at x line 1.\n\tmain::f() called\n  more"),
        "died at x line 1.\n\tmain::f() called\n  more\n";
    is logged("M\x{fc}ller \x{2026}"), "M\xc3\xbcller \xe2\x80\xa6\n";
};

done_testing;
