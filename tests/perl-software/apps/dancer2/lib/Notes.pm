package Notes;
# A Dancer2 application in the style of Dancer2's manual. It knows nothing about its server.
use Dancer2;
use Digest::SHA qw(sha1_hex);

# Any worker may get the next request of a visitor.
set engines =>
    { session => { YAML => { session_dir => $ENV{NOTES_SESSIONS}, cookie_name => 'notes' } } };
set session => 'YAML';

hook before => sub {
    response_header 'X-Hook' => 'before';
};
hook after => sub { $_[0]->header('X-After' => $_[0]->status) if $_[0]->can('header') };

get '/' => sub {
    session visits => 1 + (session('visits') // 0);
    template index => { notes => session('notes') // [], visits => session('visits') };
};

post '/note' => sub {
    my $text = body_parameters->get('text');
    send_error 'say something', 422 if !length($text // '');
    session notes => [@{ session('notes') // [] }, $text];
    redirect '/';
};

get '/logout' => sub { app->destroy_session; redirect uri_for('/') };

get '/new-id' => sub { app->change_session_id; 'changed' };

post '/upload' => sub {
    my @lines = map { join ' ', $_->size, sha1_hex($_->content), $_->type, $_->filename }
        request->upload('file');
    content_type 'text/plain';
    return join "\n", @lines, body_parameters->get('note');
};

any [qw(get post put patch options)] => '/echo/**' => sub {
    content_type 'application/json';
    my $request = request;
    return to_json(
        {
            method => $request->method, path => $request->path, splat => splat,
            uri    => $request->uri . '',
            base   => $request->base . '', query => query_parameters->mixed,
            form   => body_parameters->mixed,
            body   => $request->body, agent => $request->agent, host => $request->host,
            secure => $request->secure ? 1 : 0,
            type   => $request->content_type, length => $request->content_length || 0,
            scheme => $request->scheme,
        },
        { canonical => 1 }
    );
};

del '/note/:id[Int]' => sub { status 'no_content'; return };

get '/cookies' => sub {
    my $before = cookie 'plain';
    cookie plain  => "caf\x{e9} & tea", http_only => 1, same_site        => 'Strict';
    cookie second => 'two', path                  => '/cookies', expires => '1 hour';
    return 'before: ' . ($before // 'none');
};

get '/streamed' => sub {
    delayed {
        response_header 'X-Streamed' => 'yes';
        content_type 'text/plain';
        flush;
        content "piece $_\n" for 1 .. 50;
        done;
    };
};

get '/delayed' => sub {
    delayed { content 'delayed'; done };
};

get '/sent'     => sub { send_file 'css/notes.css' };
get '/download' => sub {
    send_file \('x' x 200_000), content_type => 'application/octet-stream', filename => 'x.bin';
};
get '/large' => sub {
    content_type 'text/plain';
    join '', map { "line $_\n" } 1 .. 300_000;
};
get '/unicode'   => sub { content_type 'text/plain'; "\x{9e92}\x{9e9f} \x{1f984} na\x{ef}ve" };
get '/forwarded' => sub { forward '/unicode' };
get '/halt'      => sub { status 403; halt 'halted'; die };
get '/pass/:any' => sub { pass };
get '/pass/on'   => sub { 'passed on' };
get '/die'       => sub { die "a bad day\n" };
get '/moved'     => sub { redirect '/unicode?from=moved', 301 };

true;
