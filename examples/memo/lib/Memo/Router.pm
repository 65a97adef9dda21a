package Memo::Router;
use v5.16;
use warnings;

# "{number}" in a route's path. Each number has one spelling (no leading zeros), because the path is
# also the page's key in the store.
my $NUMBER = '(0|[1-9][0-9]{0,8})';

# Argument: a list of [method, path, handler].
sub new {
    my ($class, @routes) = @_;
    my @compiled;
    for my $route (@routes) {
        my ($method, $path, $handler) = @$route;
        my $pattern = join $NUMBER, map { quotemeta } split /\{number\}/, $path, -1;
        push @compiled, { method => $method, pattern => qr/\A$pattern\z/, handler => $handler };
    }
    return bless { routes => \@compiled }, $class;
}

# Returns (handler, numbers…) for the request, (undef, allowed methods…) if the path is known under
# other methods, and nothing if it is unknown.
sub match {
    my ($self, $method, $path) = @_;
    $method = 'GET' if $method eq 'HEAD';
    my @allowed;
    for my $route (@{ $self->{routes} }) {
        my @numbers = $path =~ $route->{pattern} or next;
        return ($route->{handler}, defined $1 ? @numbers : ()) if $route->{method} eq $method;
        push @allowed, $route->{method};
    }
    return @allowed ? (undef, @allowed) : ();
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::Router - from method and path to code

=head1 SYNOPSIS

    my $router = Memo::Router->new(
        [GET  => '/memo/{number}', \&show],
        [POST => '/memo',          \&write],
    );
    my ($handler, @numbers) = $router->match('GET', '/memo/17');

=cut
