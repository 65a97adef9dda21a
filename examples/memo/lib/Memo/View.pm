package Memo::View;
use v5.16;
use warnings;

use Digest::SHA ();
use Encode ();
use File::Spec ();
use File::Temp ();
use Memo::Response ();
use POSIX ();
use Text::Xslate qw(mark_raw);

# Loads every template at once, because a preloading server compiles them before it forks.
sub new {
    my ($class, $directory) = @_;
    my $self = bless {
        files => [sort glob "$directory/*.tx"],
        # Xslate keeps compiled templates as files. They are code. So they go into a directory that
        # only we can write, which is removed with the process that made it.
        compiled => File::Temp->newdir('memo-templates-XXXXXXXX', TMPDIR => 1),
    }, $class;
    die "no templates in $directory\n" if !@{ $self->{files} };
    $self->{xslate} = Text::Xslate->new(
        path      => [$directory],
        cache     => 1,
        cache_dir => $self->{compiled}->dirname,
        function  => { minute => \&_minute, iso => \&_iso, thousands => \&thousands },
    );
    $self->{xslate}->load_file((File::Spec->splitpath($_))[2]) for @{ $self->{files} };
    return $self;
}

# Returns the page as UTF-8 bytes. The variables are text. Those in {raw} are HTML already.
sub render {
    my ($self, @of) = @_;
    return Encode::encode_utf8($self->part(@of));
}

# Returns a part of a page, as text.
sub part {
    my ($self, $template, $variables, $raw) = @_;
    my %all = (
        content_security_policy => $Memo::Response::CONTENT_SECURITY_POLICY,
        %$variables,
        map { $_ => mark_raw($raw->{$_}) } keys %{ $raw // {} },
    );
    return $self->{xslate}->render("$template.tx", \%all);
}

# Returns a value that changes with the templates. Pages of old templates are then useless.
sub fingerprint {
    my ($self) = @_;
    return $self->{fingerprint} //= do {
        my $digest = Digest::SHA->new(256);
        $digest->addfile($_, 'b') for @{ $self->{files} };
        substr $digest->hexdigest, 0, 16;
    };
}

sub thousands { return scalar reverse(reverse($_[0]) =~ s/(\d{3})(?=\d)/$1,/gr) }

sub _minute { return POSIX::strftime('%Y-%m-%d %H:%M', gmtime $_[0]) }
sub _iso { return POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $_[0]) }

1;

__END__

=encoding utf8

=head1 NAME

Memo::View - templates

=head1 SYNOPSIS

    my $view  = Memo::View->new('templates');
    my $bytes = $view->render('memo', { memo => $memo }, { body => Memo::Markdown::html($memo->{content}) });

=cut
