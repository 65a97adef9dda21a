use v5.16;
use warnings;
use utf8;

use FindBin qw($Bin);
use lib "$Bin/lib", "$Bin/../lib";
use Memo::Markdown;
use Test::More;
use TestMarkdown;

my $TAG =
    qr{</?(?:p|a|em|strong|code|pre|ul|ol|li|h[2-6]|blockquote|hr|br)(?: (?:href|rel|class|title|start)="[^"<>]*")*(?: /)?>};

# Nothing in it but known tags, and no link but to the web, mail or this site.
sub is_safe {
    my ($html, $name) = @_;
    my $rest = $html =~ s/$TAG//gr;
    unlike $rest, qr/[<>]/, "$name: no tag but those of Markdown" or diag $html;
    my @strange = grep { !m{\A(?:https?://|mailto:|/|\#|\?)}i } $html =~ /href="([^"]*)"/g;
    is "@strange", '', "$name: no strange link" or diag $html;
    return;
}

my %ATTACKS = (
    'script element'         => "x\n\n<script>alert(1)</script>",
    'inline script'          => 'a <script>alert(1)</script> b',
    'image with handler'     => 'a <img src=x onerror=alert(1)> b',
    'javascript link'        => 'x y [click](javascript:alert(1))',
    'JavaScript in capitals' => 'x y [click](JaVaScRiPt:alert(1))',
    'entity in scheme'    => 'x y [click](&#106;avascript:alert(1)) [c](javascript&colon;alert(1))',
    'tab in scheme'       => "x y [click](<java\tscript:alert(1)>) [c](<\x01javascript:alert(1)>)",
    'space before scheme' => 'x y [click](< javascript:alert(1)>)',
    'data link'           =>
        'x y [click](data:text/html;base64,PHNjcmlwdD4=) ![x](data:image/png;base64,AAAA)',
    'vbscript and file' => 'x y [a](vbscript:x) [b](file:///etc/passwd)',
    'autolink'          => 'x y <javascript:alert(1)>',
    'reference link'    => "x y [a]\n\n[a]: javascript:alert(1)",
    'picture'           => '![p](https://tracker.example/x.png) and ![](javascript:alert(1))',
    'quote in link'     =>
        'x y [a](https://e.example/"onmouseover="alert(1)) [b](/x "t\" onclick=\"alert(1)")',
    'quote in language'   => "x y\n\n```a\" onclick=\"alert(1)\n<b>code</b>\n```",
    'comment and include' =>
        "x y <!-- c --> z\n\n<!--# include /memo/1 -->\n\n`<!--# include /memo/1 -->`",
    'cdata, instruction' => 'x y <![CDATA[<b>]]> <?php echo 1 ?> <!DOCTYPE html>',
    'unclosed'           => "x y <a href=\"\n\n<b",
    'picture in a link'  => '[x **![p](http://p.example/)**](http://z.example/) y z',
    'deep nesting'       => ('>' x 2_000) . ' <b>x</b> ' . ('[' x 2_000),
);
for my $name (sort keys %ATTACKS) {
    my $html = TestMarkdown::html($ATTACKS{$name});
    is_safe($html, $name);
    is $html, Memo::Markdown::html($ATTACKS{$name}), "$name: the same as in Perl"
        if !TestSite::is_perl();
}

subtest 'raw HTML is shown as it was written' => sub {
    like TestMarkdown::html("x\n\na <b>b</b>"), qr{<p>a &lt;b&gt;b&lt;/b&gt;</p>};
    like TestMarkdown::html("x\n\n<div>\nc\n</div>"), qr{&lt;div&gt;\nc\n&lt;/div&gt;};
};

subtest 'a link to elsewhere is marked as written by a visitor' => sub {
    like TestMarkdown::html('x [y](https://e.example/)'),
        qr{<a rel="nofollow noopener ugc" href="https://e.example/">y</a>};
    like TestMarkdown::html('x [**y**](foo:bar)'), qr{x <strong>y</strong>},
        'a refused link leaves its words';
    like TestMarkdown::html('x ![a picture](https://e.example/p.png)'),
        qr{href="https://e.example/p.png">a picture</a>};
};

subtest 'the first line is the title, and is not said twice' => sub {
    is_deeply [TestMarkdown::title_and_excerpt("# Tea *time*\n\n*Green*, 70 °C\n\n- a\n- b")],
        ['Tea time', 'Green, 70 °C · a · b'];
    is_deeply [TestMarkdown::title_and_excerpt("Buy milk\nand bread")], ['Buy milk', 'and bread'];
    is_deeply [TestMarkdown::title_and_excerpt('---')], ['Untitled', ''];
    my ($long) = TestMarkdown::title_and_excerpt('word ' x 100);
    cmp_ok length $long, '<=', 80;
    like $long, qr/word…\z/;

    unlike TestMarkdown::html("# Tea\n\nGreen"), qr/Tea/;
    like TestMarkdown::html("# Tea\n\n# Cake"), qr{<h2>Cake</h2>},
        'headings are below that of the page';
    like TestMarkdown::html("Buy milk\nand bread"), qr/Buy milk\nand bread/,
        'a longer first paragraph stays';
    like TestMarkdown::html('[Look](https://e.example/)'), qr/href/,
        'a first line with a link stays';
};

done_testing;
