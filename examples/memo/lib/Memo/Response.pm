package Memo::Response;
use v5.16;
use warnings;

# No script, only our own styles, nothing from other sites, no framing. The pages repeat this in a
# meta element, because pages from the store come without the application's headers.
our $CONTENT_SECURITY_POLICY =
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'";

my @SAFETY = (
    'X-Content-Type-Options'  => 'nosniff',
    'X-Frame-Options'         => 'DENY',
    'Referrer-Policy'         => 'same-origin',
    'Content-Security-Policy' => $CONTENT_SECURITY_POLICY . "; frame-ancestors 'none'",
);
# A page for all visitors who are not signed in. It may change with the next memo, so browsers must
# request it again each time.
sub public_page {
    my ($bytes) = @_;
    my $answer = _answer(200, 'text/html; charset=UTF-8', 'no-cache', $bytes);
    push @{ $answer->[1] }, Vary => 'Cookie';
    return $answer;
}

# A page for one visitor.
sub personal_page {
    my ($status, $bytes, @cookies) = @_;
    return _answer($status, 'text/html; charset=UTF-8', 'private, no-store', $bytes, @cookies);
}

sub see_other {
    my ($path, @cookies) = @_;
    my $answer =
        _answer(303, 'text/plain; charset=UTF-8', 'private, no-store', "See $path\n", @cookies);
    push @{ $answer->[1] }, Location => $path;
    return $answer;
}

# A handler throws this. Memo::App makes the page of it.
sub refusal {
    my ($status, $reason, @headers) = @_;
    return bless { status => $status, reason => $reason, headers => \@headers },
        'Memo::Response::Refusal';
}

sub _answer {
    my ($status, $media_type, $cache_control, $bytes, @cookies) = @_;
    return [
        $status,
        [
            'Content-Type'   => $media_type,
            'Content-Length' => length $bytes,
            'Cache-Control'  => $cache_control,
            @SAFETY,
            map { ('Set-Cookie' => $_) } @cookies,
        ],
        [$bytes],
    ];
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Response - the PSGI answers of the site

=head1 SYNOPSIS

    return Memo::Response::public_page($bytes);
    return Memo::Response::see_other('/mypage', @cookies);
    die Memo::Response::refusal(404, 'There is no such memo.');

=cut
