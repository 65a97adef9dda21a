use v5.16;
use warnings;

use File::Temp ();
use Kirin::AppParent::LoadError;
use Test::More;

my $directory = File::Temp->newdir;

sub written {
    my ($name, $text) = @_;
    open my $file, '>', "$directory/$name" or die $!;
    print $file $text;
    close $file or die $!;
    return "$directory/$name";
}

# Returns the text for an application that has this code.
sub text_of {
    my ($code) = @_;
    my $file = written('app.psgi', $code);
    eval { require Plack::Util; Plack::Util::load_psgi($file) };
    my $text = Kirin::AppParent::LoadError::text($@);
    $text =~ s/\Q$file\E/FILE/g;
    return $text;
}

subtest 'a missing module is named with its line, and without @INC' => sub {
    is text_of("use strict;\n  use No::Such::Module;\nsub {}"),
        "Can't locate No/Such/Module.pm in \@INC (you may need to install the No::Such::Module"
        . " module) at FILE line 2.\n    use No::Such::Module;\n";
};

subtest 'an error in a module of the application is shown there' => sub {
    my $module = written('Broken.pm', "package Broken;\nuse strict;\n\$x = 1;\n1;\n");
    my $text = text_of("use lib '$directory';\nuse Broken;\nsub {}");
    like $text, qr/\AGlobal symbol "\$x"[^\n]* at \Q$module\E line 3\.$/m;
    like $text, qr/^Compilation failed in require at FILE line 2\.$/m;
    like $text, qr/\n    \$x = 1;\n\z/;
    unlike $text, qr/BEGIN failed/;
};

subtest 'messages without a place stay as they are' => sub {
    like text_of('die "no database\n"'), qr/\AError while loading FILE: no database\n\z/;
    is Kirin::AppParent::LoadError::text("fork: no memory\n"), "fork: no memory\n";
    is Kirin::AppParent::LoadError::text("two\nlines"), "two\nlines\n";
};

subtest 'only lines of the application are shown' => sub {
    like text_of('die { a => 1 }'), qr/\AHASH\(0x[0-9a-f]+\) at [^\n]+ line \d+\.\n\z/;
    is Kirin::AppParent::LoadError::text("x at (eval 3) line 1.\n"), "x at (eval 3) line 1.\n";
    is Kirin::AppParent::LoadError::text("x at /none line 1.\n"), "x at /none line 1.\n";
    my $short = written('short', "one\n");
    is Kirin::AppParent::LoadError::text("x at $short line 9.\n"), "x at $short line 9.\n";
};

subtest 'a line cannot control the terminal, and is cut' => sub {
    my $file = written('hostile', "\e[2Jclear\n" . 'x' x 500);
    is Kirin::AppParent::LoadError::text("x at $file line 1.\n"),
        "x at $file line 1.\n    ?[2Jclear\n";
    is Kirin::AppParent::LoadError::text("x at $file line 2.\n"),
        "x at $file line 2.\n    " . 'x' x 200 . "…\n";
};

subtest 'texts of characters and of bytes go together' => sub {
    my $file = written('umlaut', "my \$name = 'M\xc3\xbcller'\n");
    is Kirin::AppParent::LoadError::text("\x{fc} \x{2026} at $file line 1.\n"),
        "\xc3\xbc \xe2\x80\xa6 at $file line 1.\n    my \$name = 'M\xc3\xbcller'\n";
};

done_testing;
