package Memo::Markdown;
use v5.16;
use warnings;
use utf8;

use CommonMark qw(:node :event);

# This uses libcmark and not Text::Markdown. libcmark is a parser of the written CommonMark grammar.
# So the code can decide on the tree what is safe, before there is any HTML. Text::Markdown is a
# series of substitutions, and passes raw HTML on purpose. libcmark is also linear: 48 KB of "*a_ "
# take it 12 ms, and Text::Markdown minutes.

my $TITLE_LONGEST = 80;
my $EXCERPT_LONGEST = 140;

my $SAFE_URL = qr{\A (?: https?:// | mailto: | / | \# | \? )}xi;

# Returns a memo as safe HTML, without the title that the page shows above it.
sub html {
    my ($markdown) = @_;
    my $document = CommonMark->parse_document($markdown);
    my $first = $document->first_child;
    $first->unlink if $first && _is_just_the_title($first);
    _make_safe($document);
    my $html = $document->render_html;
    # The renderer writes every tag itself and escapes all text. So this matches only its own links.
    $html =~ s/<a href=/<a rel="nofollow noopener ugc" href=/g;
    return $html;
}

# Returns the values for lists: the first line as plain text, and the start of the rest.
sub title_and_excerpt {
    my ($markdown) = @_;
    my $document = CommonMark->parse_document($markdown);
    my $block = $document->first_child;
    my $first = $block ? _text_of($block) : '';
    my ($title, $rest) = $first =~ /\A\s*([^\n]*)\n?(.*)\z/s;
    while (length $rest < $EXCERPT_LONGEST * 2 && $block && ($block = $block->next)) {
        $rest .= ' ' . _text_of($block);
    }
    $title = _shortened($title, $TITLE_LONGEST);
    return (length $title ? $title : 'Untitled', _shortened($rest, $EXCERPT_LONGEST));
}

sub _is_just_the_title {
    my ($block) = @_;
    my $type = $block->get_type;
    return 0 if $type != NODE_HEADING && $type != NODE_PARAGRAPH;
    my $text = _text_of($block) =~ s/\A\s+|\s+\z//gr;
    return length $text && length $text <= $TITLE_LONGEST && $text !~ /\n/ && !_has_link($block);
}

sub _has_link {
    my ($block) = @_;
    return
        scalar grep { my $type = $_->get_type; $type == NODE_LINK || $type == NODE_IMAGE }
        _nodes($block);
}

# Returns the nodes in the order of the text. They are collected first, so that the tree may then be
# changed.
sub _nodes {
    my ($root) = @_;
    my @nodes;
    my $iterator = $root->iterator;
    while (my ($event, $node) = $iterator->next) {
        push @nodes, $node if $event == EVENT_ENTER;
    }
    return @nodes;
}

sub _text_of {
    my ($block) = @_;
    my $text = '';
    for my $node (_nodes($block)) {
        my $type = $node->get_type;
        if ($type == NODE_SOFTBREAK || $type == NODE_LINEBREAK) { $text .= "\n" }
        elsif ($type == NODE_ITEM) { $text .= ' · ' }
        elsif ($type == NODE_PARAGRAPH) { $text .= ' ' }
        else { $text .= $node->get_literal // '' }
    }
    return $text;
}

sub _shortened {
    my ($text, $longest) = @_;
    $text =~ s/\s+/ /g;
    $text =~ s/\A[ ·]+| \z//g;
    $text =~ s/(?<=[.:!?]) · / /g;
    return $text if length $text <= $longest;
    return (substr($text, 0, $longest - 1) =~ s/\s+\S{0,15}\z//r) . '…';
}

# Makes the tree safe. Raw HTML becomes text that shows it. A link to anything but the web, mail or
# this site becomes its words. A picture becomes a link to it; otherwise a memo could make every
# reader's browser send requests to any server. Headings go one level down, below the page's own.
sub _make_safe {
    my ($document) = @_;
    for my $node (_nodes($document)) {
        my $type = $node->get_type;
        if ($type == NODE_HTML_BLOCK) {
            $node->replace(CommonMark->create_paragraph(text => $node->get_literal));
        }
        elsif ($type == NODE_HTML_INLINE) {
            $node->replace(CommonMark->create_text(literal => $node->get_literal));
        }
        elsif ($type == NODE_LINK || $type == NODE_IMAGE) {
            _make_link_safe($node, $type);
        }
        elsif ($type == NODE_HEADING) {
            my $level = $node->get_header_level + 1;
            $node->set_header_level($level > 6 ? 6 : $level);
        }
    }
    return;
}

sub _make_link_safe {
    my ($node, $type) = @_;
    my $url = $node->get_url // '';
    my $is_web = $url =~ $SAFE_URL;
    return if $type == NODE_LINK && $is_web;
    # Links do not nest. A picture in a link becomes only its words.
    my $link = $is_web && !_is_in_link($node) ? CommonMark->create_link(url => $url) : undef;
    if ($link) {
        $node->insert_before($link);
        $link->append_child(CommonMark->create_text(literal => $url)) if !$node->first_child;
    }
    while (my $child = $node->first_child) {
        $link ? $link->append_child($child) : $node->insert_before($child);
    }
    $node->unlink;
    return;
}

sub _is_in_link {
    my ($node) = @_;
    while ($node = $node->parent) {
        return 1 if $node->get_type == NODE_LINK;
    }
    return 0;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Markdown - a stranger's Markdown as HTML that is safe to show

=head1 SYNOPSIS

    my $html = Memo::Markdown::html("# Tea\n\n*Green*, 70 °C");
    my ($title, $excerpt) = Memo::Markdown::title_and_excerpt("# Tea\n\n*Green*, 70 °C");

=cut
