#!/usr/bin/env perl
# A Mojolicious application in the style of Mojolicious' guides. It knows nothing about PSGI.
use Mojolicious::Lite -signatures;
use Mojo::Util qw(sha1_sum);

app->secrets(['not a secret: tests only']);
app->sessions->cookie_name('memo');

get '/' => sub ($c) {
    $c->session->{visits}++;
    $c->stash(memos => $c->session('memos') // []);
    $c->render('index');
} => 'index';

post '/memo' => sub ($c) {
    my $v = $c->validation;
    return $c->render('index', memos => [], status => 422)
        if !$v->required('text')->size(1, 40)->is_valid;
    push @{ $c->session->{memos} //= [] }, $v->param('text');
    $c->flash(message => 'Noted: ' . $v->param('text'));
    $c->redirect_to('index');
};

post '/checked' => sub ($c) {
    return $c->render(text => 'Bad CSRF token!', status => 403)
        if $c->validation->csrf_protect->has_error('csrf_token');
    $c->render(text => 'token accepted');
};

post '/upload' => sub ($c) {
    my @files = map {
        +{
            field => $_->name, name => $_->filename, size => $_->size, sha1 => sha1_sum($_->slurp),
            type  => $_->headers->content_type,
        }
    } @{ $c->req->every_upload('file') };
    $c->render(json => { files => \@files, note => $c->param('note') });
};

put '/api/memo/:id' => [id => qr/\d+/] => sub ($c) {
    my $memo = $c->req->json or return $c->render(json => { error => 'not JSON' }, status => 400);
    $c->res->headers->location($c->url_for->to_abs);
    $c->render(json => { id => $c->param('id'), memo => $memo }, status => 201);
};

del '/api/memo/:id' => sub ($c) { $c->rendered(204) };

any '/echo/*rest' => sub ($c) {
    $c->render(
        json => {
            method => $c->req->method, path => $c->req->url->path->to_string,
            rest   => $c->param('rest'),
            query  => $c->req->query_params->to_hash, url => $c->req->url->to_abs->to_string,
            body   => $c->req->body, agent                => $c->req->headers->user_agent,
            secure => $c->req->is_secure ? 1 : 0,
        }
    );
};

get '/cookies' => sub ($c) {
    $c->cookie(plain => 'one', { path => '/', httponly => 1, samesite => 'Lax' });
    $c->signed_cookie(signed => 'two');
    $c->render(json => { plain => $c->cookie('plain'), signed => $c->signed_cookie('signed') });
};

get '/chunks' => sub ($c) {
    my $number = 0;
    my $drain;
    $drain = sub ($c, @) {
        $number++ < 5
            ? $c->write_chunk("chunk $number\n", $drain)
            : do { undef $drain; $c->write_chunk('') };
    };
    $c->$drain;
};

get '/unsized' => sub ($c) {
    $c->res->headers->content_length(12);
    $c->write('hello ', sub ($c, @) { $c->write('writer') });
};

get '/large' => sub ($c) {
    $c->render(text => join '', map { "line $_\n" } 1 .. 400_000);
};
get '/unicode' => sub ($c) { $c->render(text => "\x{9e92}\x{9e9f} \x{1f984} na\x{ef}ve") };
get '/file'    => sub ($c) { $c->reply->static('picture.svg') };
get '/teapot'  => sub ($c) { $c->render(text => 'short and stout', status => 418) };
get '/moved'   => sub ($c) { $c->res->code(301); $c->redirect_to('/unicode?from=moved#part') };
get '/die'     => sub ($c) { die "a bad day\n" };
get '/stash'   => { format => 'txt', text => 'from the stash' };
websocket '/ws' => sub ($c) {
    $c->on(message => sub ($c, $text) { $c->send("echo: $text") });
};

app->start;

__DATA__

@@ index.html.ep
% layout 'page', title => 'Memos';
% if (my $message = flash 'message') {
  <p class="flash"><%= $message %></p>
% }
<p>visit <%= session 'visits' %></p>
%= form_for '/memo' => (method => 'POST') => begin
  %= text_field 'text'
  %= submit_button 'Note'
% end
<ul>
% for my $memo (@$memos) {
  <li><%= $memo %></li>
% }
</ul>
%= link_to Again => url_for('index')->to_abs
%= csrf_field

@@ layouts/page.html.ep
<!DOCTYPE html>
<html><head><title><%= title %></title></head><body><%= content %></body></html>

@@ not_found.html.ep
<h1>nothing at <%= $c->req->url->path %></h1>
