package Memo::Response;
use v5.16;
use warnings;

# No script, no styles but ours, nothing from elsewhere, no framing. The pages repeat it in a meta element,
# because those from the store come without the application's headers.
our $CONTENT_SECURITY_POLICY =
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'";

my @SAFETY = (
    'X-Content-Type-Options'  => 'nosniff',
    'X-Frame-Options'         => 'DENY',
    'Referrer-Policy'         => 'same-origin',
    'Content-Security-Policy' => $CONTENT_SECURITY_POLICY . "; frame-ancestors 'none'",
);
# The same for everybody who is not signed in. It may change with the next memo, so it is to be asked for again each time.
sub public_page {
    my ($bytes) = @_;
    my $answer = _answer(200, 'text/html; charset=UTF-8', 'no-cache', $bytes);
    push @{ $answer->[1] }, Vary => 'Cookie';
    return $answer;
}

# For one visitor.
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

# To be thrown by a handler; Memo::App makes the page of it.
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
