package Journal::Controller::Root;
use Moose;
use namespace::autoclean;

use Digest::SHA qw(sha1_hex);
use JSON::PP;

BEGIN { extends 'Catalyst::Controller' }

__PACKAGE__->config(namespace => '');

sub begin : Private {
    my ($self, $c) = @_;
    $c->response->header('X-Begin' => $c->action->name);
}

sub index : Path : Args(0) {
    my ($self, $c) = @_;
    $c->session->{visits}++;
    $c->stash(template => 'index.tt', message => $c->flash->{message});
    $c->forward('View::HTML');
}

sub entry : Local : Args(0) POST {
    my ($self, $c) = @_;
    my $text = $c->request->body_parameters->{text} // '';
    $c->detach('refused') if !length $text;
    push @{ $c->session->{entries} }, $text;
    $c->flash(message => "Written: $text");
    $c->response->redirect($c->uri_for($self->action_for('index')));
}

sub refused : Private {
    my ($self, $c) = @_;
    $c->response->status(422);
    $c->response->body('say something');
}

sub logout : Local {
    my ($self, $c) = @_;
    $c->delete_session('logged out');
    $c->response->redirect($c->uri_for('/'), 303);
}

sub new_id : Local {
    my ($self, $c) = @_;
    $c->change_session_id;
    $c->response->body('changed');
}

sub upload : Local {
    my ($self, $c) = @_;
    my @lines = map {
        join ' ', $_->size, sha1_hex($_->slurp(':raw')), $_->type, $_->basename, $_->filename
    } $c->request->upload('file');
    $c->response->content_type('text/plain');
    $c->response->body(join "\n", @lines, $c->request->parameters->{note});
}

sub echo : Local {
    my ($self, $c, @rest) = @_;
    my $request = $c->request;
    my $body = $request->body;
    $c->response->content_type('application/json');
    $c->response->body(
        JSON::PP->new->utf8->canonical->encode(
            {
                method   => $request->method, path => $request->path, rest => \@rest,
                uri      => $request->uri . '',
                base     => $request->base . '', query => $request->query_parameters,
                form     => $request->body_parameters,
                keywords => $request->query_keywords,
                body     => (ref $body ? do { local $/; readline $body } : undef),
                agent    => $request->user_agent, secure => $request->secure ? 1 : 0,
                address  => $request->address,
                protocol => $request->protocol, type => scalar $request->content_type,
                cookies  => [sort keys %{ $request->cookies }],
            }
        )
    );
}

sub json : Local Consumes(JSON) {
    my ($self, $c) = @_;
    $c->response->content_type('application/json');
    $c->response->body(JSON::PP->new->utf8->canonical->encode({ data => $c->request->body_data }));
}

# Chained actions.
sub book : Chained('/') CaptureArgs(1) { $_[1]->stash(book => $_[2]) }

sub page : Chained('book') Args(1) {
    my ($self, $c, $page) = @_;
    $c->response->body("page $page of " . $c->stash->{book});
}

sub cookies : Local {
    my ($self, $c) = @_;
    my $plain = $c->request->cookie('plain');
    $c->response->cookies->{plain} = { value => 'one & two', httponly => 1 };
    $c->response->cookies->{second} = { value => ['a', 'b'], path => '/cookies' };
    $c->response->body('before: ' . ($plain ? $plain->value : 'none'));
}

sub streamed : Local {
    my ($self, $c) = @_;
    $c->response->content_type('text/plain; charset=utf-8');
    $c->response->write("piece $_ \x{9e92}\n") for 1 .. 50;
}

sub writer : Local {
    my ($self, $c) = @_;
    $c->response->content_type('text/plain');
    my $writer = $c->response->write_fh;
    $writer->write("piece $_\n") for 1 .. 3;
    $writer->close;
}

sub handle : Local {
    my ($self, $c) = @_;
    open my $file, '<:raw', $c->path_to('root', 'static', 'journal.css') or die $!;
    $c->response->content_type('text/css');
    $c->response->body($file);
}

sub temporary : Local {
    my ($self, $c) = @_;
    open my $file, '+>', undef or die $!;
    print {$file} "line $_\n" for 1 .. 300_000;
    seek $file, 0, 0;
    $c->response->content_type('text/plain');
    $c->response->body($file);
}

# A PSGI response inside of Catalyst's response.
sub psgi : Local {
    my ($self, $c) = @_;
    $c->response->from_psgi_response(
        sub { $_[0]->([202, ['Content-Type' => 'text/plain', 'X-Inner' => 1], ['inner']]) });
}

sub large : Local {
    $_[1]->response->body(join '', map { "line $_\n" } 1 .. 300_000);
}
sub unicode : Local { $_[1]->response->body("\x{9e92}\x{9e9f} \x{1f984} na\x{ef}ve") }
sub nothing : Local { $_[1]->response->status(204) }
sub same : Local { $_[1]->response->status(304); $_[1]->response->header(ETag => '"x"') }
sub bad : Local { die "a bad day\n" }
sub default : Path { $_[1]->response->status(404); $_[1]->response->body('Page not found') }

sub end : Private {
    my ($self, $c) = @_;
    return if $c->response->finalized_headers || $c->response->content_type;
    $c->response->content_type('text/html; charset=utf-8');
}

__PACKAGE__->meta->make_immutable;

1;
