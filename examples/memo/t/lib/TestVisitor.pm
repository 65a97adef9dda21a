package TestVisitor;
use v5.16;
use warnings;

use HTTP::Request::Common ();
use Plack::Test ();

# A browser as far as the tests need one: keeps cookies, fills forms with the token of the page they
# are on.
sub new {
    my ($class, $psgi) = @_;
    return bless { test => Plack::Test->create($psgi), cookies => {} }, $class;
}

sub cookies { return $_[0]{cookies} }

sub get { return $_[0]->_request(HTTP::Request::Common::GET($_[1])) }

sub post {
    my ($self, $path, @fields) = @_;
    return $self->_request(HTTP::Request::Common::POST($path, [@fields]));
}

# Posts the form that is on $page.
sub submit {
    my ($self, $page, $path, @fields) = @_;
    return $self->post($path, csrf_token => $self->csrf_token_on($page), @fields);
}

sub csrf_token_on {
    my ($self, $page) = @_;
    my ($token) = $self->get($page)->content =~ /name="csrf_token" value="([^"]+)"/;
    return $token // die "no form on $page\n";
}

# The id of a new memo.
sub write {
    my ($self, $content, @fields) = @_;
    my $answer = $self->submit('/mypage', '/memo', content => $content, @fields);
    my ($id) = ($answer->header('Location') // '') =~ m{\A/memo/(\d+)\z};
    return $id // die 'memo was not accepted: ', $answer->as_string;
}

sub _request {
    my ($self, $request) = @_;
    my $cookies = $self->{cookies};
    $request->header(Cookie => join '; ', map { "$_=$cookies->{$_}" } sort keys %$cookies)
        if %$cookies;
    my $answer = $self->{test}->request($request);
    for my $cookie ($answer->header('Set-Cookie')) {
        my ($name, $value) = $cookie =~ /\A([^=]+)=([^;]*)/;
        $cookie =~ /Max-Age=0/ ? delete $cookies->{$name} : ($cookies->{$name} = $value);
    }
    return $answer;
}

1;
