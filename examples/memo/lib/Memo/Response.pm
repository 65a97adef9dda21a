package Memo::Response;
use v5.16;
use warnings;

use JSON::PP ();

# No script but ours, no styles but ours, nothing from elsewhere, no framing. The pages repeat it in a meta element,
# because those from the store come without the application's headers.
our $CONTENT_SECURITY_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    . "connect-src 'self'; base-uri 'none'; form-action 'self'";

my @SAFETY = (
    'X-Content-Type-Options'  => 'nosniff',
    'X-Frame-Options'         => 'DENY',
    'Referrer-Policy'         => 'same-origin',
    'Content-Security-Policy' => $CONTENT_SECURITY_POLICY . "; frame-ancestors 'none'",
);
my $JSON = JSON::PP->new->utf8->canonical;

# The same for everybody. It may change with the next memo, so it is to be asked for again each time.
sub public_page {
    my ($bytes) = @_;
    return _answer(200, 'text/html; charset=UTF-8', 'no-cache', $bytes);
}

# For one visitor.
sub personal_page {
    my ($status, $bytes, @cookies) = @_;
    return _answer($status, 'text/html; charset=UTF-8', 'private, no-store', $bytes, @cookies);
}

sub json {
    my ($data) = @_;
    return _answer(200, 'application/json', 'no-store', $JSON->encode($data));
}

sub see_other {
    my ($path, @cookies) = @_;
    my $answer = _answer(303, 'text/plain; charset=UTF-8', 'private, no-store', "See $path\n", @cookies);
    push @{ $answer->[1] }, Location => $path;
    return $answer;
}

# To be thrown by a handler; Memo::App makes the page of it.
sub refusal {
    my ($status, $reason, @headers) = @_;
    return bless { status => $status, reason => $reason, headers => \@headers }, 'Memo::Response::Refusal';
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
