package Browser;
use v5.16;
use warnings;

use Cookie::Baker ();
use HTTP::Date ();

# Keeps the cookies of one visitor of a PSGI application.
#
#     my $browser = Browser->new($app);
#     my $body = $browser->get('/path');      # what it sent as cookie is in $browser->{sent}

sub new {
    my ($class, $app) = @_;
    return bless { app => $app, cookie => {} }, $class;
}

sub get {
    my ($self, $path, %env) = @_;
    my $cookies = join '; ', map { "$_=$self->{cookie}{$_}" } sort keys %{ $self->{cookie} };
    open my $input, '<', \'' or die $!;
    my $log = $self->{log} = \my $text;
    open my $errors, '>', $log or die $!;
    my %request = (
        REQUEST_METHOD   => 'GET', PATH_INFO => $path, REQUEST_URI => $path, SCRIPT_NAME => '',
        QUERY_STRING     => '',
        SERVER_NAME      => 'localhost', SERVER_PORT => 80, SERVER_PROTOCOL => 'HTTP/1.1',
        'psgi.input'     => $input,
        'psgi.errors'    => $errors, 'psgi.url_scheme' => 'http', 'psgi.version' => [1, 1],
        'psgi.streaming' => 1,
        length $cookies ? (HTTP_COOKIE => $cookies) : (), %env,
    );
    my $response = $self->{app}->(\%request);
    $self->{sent} = [];
    my @body;
    my $take = sub {
        my ($status, $headers, $body) = @{ $_[0] };
        for (my $i = 0; $i < @$headers; $i += 2) {
            $self->take_cookie($headers->[$i + 1]) if lc $headers->[$i] eq 'set-cookie';
        }
        return push @body, @$body if $body;
        return Plack::Util::inline_object(write => sub { push @body, @_ }, close => sub { });
    };
    ref $response eq 'CODE' ? $response->($take) : $take->($response);
    return join '', @body;
}

sub take_cookie {
    my ($self, $line) = @_;
    push @{ $self->{sent} }, $line;
    my ($name, $value) = $line =~ /\A([^=;]+)=([^;]*)/ or die $line;
    my ($expires) = $line =~ /expires=([^;]+)/;
    if ($expires && HTTP::Date::str2time($expires) <= time) {
        delete $self->{cookie}{$name};
    }
    else {
        $self->{cookie}{$name} = $value;
    }
}

1;
