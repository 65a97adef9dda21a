#!/usr/bin/env perl
# The server of the chat. It holds the WebSockets. Kirin serves the page and its files.
#
# One process has all visitors and the last messages in its memory.
use Mojolicious::Lite -signatures;

use Mojo::IOLoop ();
use Mojo::URL ();
use Mojo::Util qw(trim);
use Mojo::WebSocket qw(WS_PING);

my $LONGEST_NAME = 20;
my $LONGEST_TEXT = 500;
my $REMEMBERED_MESSAGES = 50;
# A visitor may send this many messages in this many seconds.
my ($BURST, $BURST_SECS) = (10, 10);
# The largest message with all text escaped as \uXXXX.
my $LARGEST_MESSAGE_BYTES = 8 * 1024;
my ($PING_SECS, $SILENCE_SECS) = (20, 60);

my %visitors;    # by the id of the connection: controller, name, times of the last messages
my @recent;      # the last messages, the newest at the end

websocket '/socket' => sub ($c) {
    # Browsers send the origin of the page. A page of another site must not speak for its visitors.
    return $c->rendered(403) if !is_own_page($c);
    my $id = $c->tx->connection;
    $c->tx->max_websocket_size($LARGEST_MESSAGE_BYTES);
    $c->inactivity_timeout($SILENCE_SECS);
    $visitors{$id} = { controller => $c, sent => [] };
    $c->on(
        # Mojolicious passes no argument if the text is not JSON.
        json => sub ($c, $message = undef) {
            my $problem = receive($visitors{$id}, $message);
            $c->send({ json => { error => $problem } }) if defined $problem;
        }
    );
    $c->on(
        finish => sub (@) {
            my $visitor = delete $visitors{$id};
            tell_who_is_present() if defined $visitor->{name};
        }
    );
};

get '/messages' => sub ($c) {
    $c->res->headers->cache_control('public, max-age=2');
    $c->render(template => 'messages', messages => \@recent);
};

# A silent connection would end after $SILENCE_SECS. Browsers answer a ping by themselves.
Mojo::IOLoop->recurring(
    $PING_SECS => sub (@) {
        $_->{controller}->send([1, 0, 0, 0, WS_PING, '']) for values %visitors;
    }
);

sub is_own_page ($c) {
    my $headers = $c->req->headers;
    my $origin = Mojo::URL->new($headers->origin // '');
    return lc($origin->host_port // '') eq lc($headers->host // '');
}

# Carries out what a visitor has sent: first { name }, then { text }. Returns a text if it is
# refused.
sub receive ($visitor, $message) {
    return 'This is not a message.' if ref $message ne 'HASH';
    my ($name, $text) = map { defined && !ref ? trim($_) : '' } @$message{qw(name text)};
    return defined $visitor->{name} ? say_to_all($visitor, $text) : enter($visitor, $name);
}

sub enter ($visitor, $name) {
    return "Write a name of 1 to $LONGEST_NAME letters."
        if $name !~ /\A[^\p{Cntrl}\p{Cf}]{1,$LONGEST_NAME}\z/;
    return 'Somebody here has this name.'
        if grep { lc($_->{name} // '') eq lc $name } values %visitors;
    $visitor->{name} = $name;
    $visitor->{controller}->send({ json => { welcome => $name, messages => \@recent } });
    tell_who_is_present();
    return undef;
}

sub say_to_all ($visitor, $text) {
    return "Write 1 to $LONGEST_TEXT letters." if !length $text || length $text > $LONGEST_TEXT;
    my $now = time;
    my $sent = $visitor->{sent};
    shift @$sent while @$sent && $sent->[0] <= $now - $BURST_SECS;
    return 'Wait a moment: too many messages.' if @$sent >= $BURST;
    push @$sent, $now;

    my $message = { name => $visitor->{name}, text => $text, time => $now };
    push @recent, $message;
    shift @recent while @recent > $REMEMBERED_MESSAGES;
    send_to_all({ messages => [$message] });
    return undef;
}

sub tell_who_is_present () {
    send_to_all({ present => [sort map { $_->{name} // () } values %visitors] });
    return;
}

# Sends to all visitors that have a name.
sub send_to_all ($data) {
    $_->{controller}->send({ json => $data }) for grep { defined $_->{name} } values %visitors;
    return;
}

app->start;

__DATA__

@@ messages.html.ep
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The last messages · chat</title>
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/chat.css">
</head>
<body>
<header><h1>The last messages</h1> <a href="/">Join the chat</a></header>
<main>
<ol class="messages">
% for my $message (@$messages) {
<li><b><%= $message->{name} %></b> <span><%= $message->{text} %></span></li>
% }
</ol>
% if (!@$messages) {
<p class="hint">Nobody has written anything yet.</p>
% }
</main>
</body>
</html>
