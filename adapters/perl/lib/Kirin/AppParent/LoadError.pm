package Kirin::AppParent::LoadError;
use v5.16;
use warnings;

use Config ();

# The longest line of an application that is shown.
use constant LINE_BYTES => 200;

# Perl writes all directories of @INC into the error for a missing module: "contains" until 5.36,
# "entries checked" from 5.38.
my $DIRECTORIES = qr/ \(\@INC (?:contains|entries checked):[^\n]*?\)(?= at )/;
my $PLACE = qr/ at ([^\n]+?) line ([0-9]+)/;

# Returns the reason why an application cannot be loaded as a person reads it, in bytes: without the
# directories of @INC, and with the line that is wrong.
sub text {
    my $reason = "$_[0]";
    utf8::encode($reason) if utf8::is_utf8($reason);
    $reason =~ s/$DIRECTORIES//g;
    $reason =~ s/\AError while loading [^\n]*?: (?=[^\n]*$PLACE)//;
    my @places;
    while ($reason =~ /$PLACE/g) {
        push @places, [$1, $2];
    }
    # A place that is named already is no news.
    $reason =~ s/^BEGIN failed--compilation aborted$PLACE\.\n//gm if @places > 1;
    my ($of_user) = grep { !is_installed($_->[0]) } @places;
    my $line = $of_user ? line_of(@$of_user) : undef;
    $reason =~ s/\n+\z//;
    return $reason . (defined $line ? "\n    $line\n" : "\n");
}

# Returns whether a file came with Perl or with a package, and not with the application.
sub is_installed {
    my ($file) = @_;
    my @directories = @Config::Config{
        qw(privlibexp archlibexp sitelibexp sitearchexp vendorlibexp
            vendorarchexp)
    };
    return $file =~ m{/perl-base/} || grep { $_ && index($file, "$_/") == 0 } @directories;
}

# Returns a line of a file without the blanks around it, or undef.
sub line_of {
    my ($file, $number) = @_;
    # Perl names code that no file has by "(eval 1)".
    return if !-f $file || !open my $lines, '<', $file;
    my $line;
    for (1 .. $number) {
        $line = <$lines> // return;
    }
    $line =~ s/\A\s+|\s+\z//g;
    $line =~ s/[^\x20-\x7e]/?/g if $line =~ /[\x00-\x1f\x7f]/;
    return if $line eq '';
    return length $line > LINE_BYTES ? substr($line, 0, LINE_BYTES) . '…' : $line;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Kirin::AppParent::LoadError - why an application cannot be loaded, for people

=head1 SYNOPSIS

    my $text = Kirin::AppParent::LoadError::text($@);

=head1 DESCRIPTION

The error of a missing module names all directories of C<@INC>, and says twice where it was met.
This takes out what nobody reads, and adds the line of the application.

=cut
