//! Pages with directives: the directives, requests for parts, and the fields of the response.

use kirin_tests::{Kirin, Memcached, Reply, Site, wait_for};

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\", \"app:web\"]\n\
    [[route]]\npath = \"/memory\"\ntry = [\"store\"]\n\
    [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\nrate_limit = [{ rate = \"1/h\" }]\n";

/// An application that answers `/app/meet/A/B` only after a request for `/app/meet/B/…`.
const APP: &str = r#"
use v5.16; use warnings; use Plack::Request;
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    my $text = sub { [200, ['Content-Type' => 'text/plain', 'Set-Cookie' => 'part=1', @{ $_[1] // [] }], [$_[0]]] };
    if (my ($me, $other) = $path =~ m{^/app/meet/(\w+)/(\w+)}) {
        open my $file, '>', "met-$me" or die $!;
        close $file;
        until (-e "met-$other") { select undef, undef, undef, 0.01 }
        return $text->("$me met $other");
    }
    if (my ($name) = $path =~ m{^/app/wait/(\w+)}) {
        open my $file, '>', "asked-$name" or die $!;
        close $file;
        until (-e "go-$name") { select undef, undef, undef, 0.01 }
        return $text->("waited for $name");
    }
    return $text->("<$env->{REQUEST_METHOD} $env->{REQUEST_URI} " . join(' ', map { "$_=" . ($env->{$_} // '') }
        qw(HTTP_COOKIE HTTP_IF_NONE_MATCH HTTP_RANGE HTTP_ACCEPT_ENCODING REMOTE_ADDR)) . '>') if $path =~ m{^/app/echo};
    return $text->('') if $path eq '/app/empty';
    return sub { my $writer = shift->([200, ['Content-Type' => 'text/plain']]); $writer->write("part $_ ") for 1 .. 3; $writer->close } if $path eq '/app/stream';
    return $text->('kept', ['Cache-Control' => Plack::Request->new($env)->param('as')]) if $path eq '/app/cache';
    return [302, [Location => '/app/empty'], []] if $path eq '/app/elsewhere';
    die "a bad day\n" if $path eq '/app/die';
    [404, ['Content-Type' => 'text/plain'], ['not here']];
};
"#;

const ERROR: &str = "[an error occurred while processing the directive]";

fn serve() -> (Site, Kirin, Memcached) {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/file.txt", "a file")
        .with("public/d/e.txt", "beside");
    let kirin = Kirin::start(&site, CONFIG);
    let memcached = Memcached::connect(&site.path("m.sock"));
    (site, kirin, memcached)
}

/// Stores `page` and requests it.
fn show(kirin: &Kirin, memcached: &mut Memcached, page: &str) -> String {
    memcached.set("/d/page?name=%41lice&x=1", format!("text/html\r\n{page}").as_bytes());
    let fields = "Cookie: a=1; Name=<Mary>\r\nX-Some-Field: field\r\nRange: bytes=0-1\r\n";
    kirin.connect().request("GET", "/d/page?name=%41lice&x=1", fields).text()
}

#[test]
fn directives_are_carried_out_as_nginx_does() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("fragment", b"[<!--# echo var=\"title\" -->]");
    for (page, shown) in [
        ("<!--# echo var=\"uri\" --> <!--#echo var='DOCUMENT_NAME'-->", "/d/page page"),
        ("<!--# echo var=\"request_uri\" encoding=\"none\" -->", "/d/page?name=%41lice&x=1"),
        ("<!--# echo var=\"QUERY_STRING\" -->", "name=%41lice&amp;x=1"),
        (
            "<!--# echo var=\"arg_name\" --> <!--# echo var=\"arg_none\" default=\"no\" -->",
            "%41lice no",
        ),
        ("<!--# echo var=\"cookie_name\" -->", "&lt;Mary&gt;"),
        (
            "<!--# echo var=\"http_x_some_field\" --> <!--# echo var=\"http_none\" -->",
            "field (none)",
        ),
        ("<!--# echo var=\"request_method\" --> <!--# echo var=\"scheme\" -->", "GET http"),
        ("<!--# echo var=\"host\" --> <!--# echo var=\"server_protocol\" -->", "test HTTP/1.1"),
        ("<!--# echo var=\"remote_addr\" -->", "127.0.0.1"),
        ("<!--# set var=\"title\" value=\"$cookie_a!\" --><!--# include fragment -->", "[1!]"),
        ("<!--# if expr=\"$arg_x = /^\\d$/\" -->digit<!--# else -->none<!--# endif -->", "digit"),
        (
            "<!--# if expr=\"$cookie_none\" -->a<!--# elif expr=\"$arg_x = 2\" -->b<!--# else -->c<!--# endif -->",
            "c",
        ),
        (
            "<!--# config timefmt=\"%Y\" --><!--# if expr=\"$date_gmt = /^2\\d{3}$/\" -->a year<!--# endif -->",
            "a year",
        ),
        ("<!--# nonsense -->", ERROR),
        ("<!--# config errmsg=\"oops\" --><!--# include virtual=\"/app/none\" -->", "oops"),
        // These are requests to files, to the application and to the store.
        ("<!--# include virtual=\"/file.txt\" -->!", "a file!"),
        ("<!--# include file=\"e.txt\" -->", "beside"),
        ("<!--# include file=\"../file.txt\" -->", ERROR),
        ("<!--# include file=\"/file.txt\" -->", ERROR),
        ("<!--# include virtual=\"/app/stream\" -->", "part 1 part 2 part 3 "),
        ("<!--# include virtual=\"/app/empty\" -->.", "."),
        ("<!--# include virtual=\"/app/elsewhere\" -->", ERROR),
        (
            "<!--# include virtual=\"/app/die\" -->.",
            "[an error occurred while processing the directive].",
        ),
        (
            "<!--# include virtual=\"/app/echo?$arg_name\" -->",
            "<GET /app/echo?%41lice HTTP_COOKIE=a=1; Name=<Mary> HTTP_IF_NONE_MATCH= HTTP_RANGE= \
             HTTP_ACCEPT_ENCODING=identity REMOTE_ADDR=127.0.0.1>",
        ),
        (
            "<!--# block name=\"b\" -->instead<!--# endblock --><!--# include virtual=\"/app/none\" stub=\"b\" -->",
            "instead",
        ),
        (
            "<!--# block name=\"b\" -->instead<!--# endblock --><!--# include virtual=\"/app/empty\" stub=\"b\" -->",
            "instead",
        ),
        (
            "<!--# include virtual=\"/app/stream\" set=\"s\" --><!--# if expr=\"$s = /2/\" -->set<!--# endif -->",
            "set",
        ),
        (
            "<!--# include virtual=\"/file.txt\" set=\"s\" --><!--# echo var=\"s\" --><!--# include virtual=\"/app/$s\" -->",
            "a file[an error occurred while processing the directive]",
        ),
    ] {
        assert_eq!(show(&kirin, &mut memcached, page), shown, "{page}");
    }
}

#[test]
fn requests_of_a_page_run_at_the_same_time_unless_it_waits() {
    let (site, kirin, mut memcached) = serve();
    let page =
        "<!--# include virtual=\"/app/meet/a/b\" -->, <!--# include virtual=\"/app/meet/b/a\" -->.";
    assert_eq!(show(&kirin, &mut memcached, page), "a met b, b met a.");
    // The second request would end the waiting of the first, but it is not sent before that has
    // ended.
    let page = "<!--# include virtual=\"/app/wait/first\" wait=\"yes\" -->, <!--# include virtual=\"/app/wait/second\" -->.";
    std::thread::scope(|scope| {
        let shown = scope.spawn(|| show(&kirin, &mut memcached, page));
        wait_for("the first request", || site.path("asked-first").exists().then_some(()));
        assert!(!site.path("asked-second").exists());
        std::fs::write(site.path("go-first"), "").unwrap();
        wait_for("the second request", || site.path("asked-second").exists().then_some(()));
        std::fs::write(site.path("go-second"), "").unwrap();
        assert_eq!(shown.join().unwrap(), "waited for first, waited for second.");
    });
}

#[test]
fn nested_pages_are_limited_in_depth() {
    let (_site, kirin, mut memcached) = serve();
    memcached
        .set("/memory/outer", b"text/html\r\n(<!--# include virtual=\"/memory/inner?a=b\" -->)");
    memcached.set(
        "/memory/inner?a=b",
        b"text/html\r\n<!--# echo var=\"arg_a\" --> in <!--# echo var=\"uri\" -->",
    );
    assert_eq!(kirin.get("/memory/outer").text(), "(b in /memory/inner)");
    // Kirin does not look for directives in a part.
    memcached.set("/memory/plain", b"text/plain\r\n<!--# nonsense -->");
    memcached.set("/memory/outer", b"text/html\r\n<!--# include virtual=\"/memory/plain\" -->");
    assert_eq!(kirin.get("/memory/outer").text(), "<!--# nonsense -->");
    memcached.set("/memory/self", b"text/html\r\nx<!--# include virtual=\"/memory/self\" -->");
    assert_eq!(kirin.get("/memory/self").text(), format!("{}{ERROR}", "x".repeat(9)));
    kirin.wait_for_log("requests go in a circle");
    // Each includes the next twice. 2 to the power of 9 pages would be fine, 2 to the power of 30
    // would not.
    let many = "<!--# include virtual=\"/memory/many\" -->".repeat(30);
    memcached.set("/memory/many", format!("text/html\r\nx{many}").as_bytes());
    let shown = kirin.get("/memory/many").text();
    assert_eq!(shown.matches('x').count(), 1025);
}

fn tagged(kirin: &Kirin, path: &str) -> (Reply, String) {
    let reply = kirin.get(path);
    let tag = reply.field("etag").expect("an ETag").to_owned();
    (reply, tag)
}

#[test]
fn a_page_is_304_only_if_nothing_in_it_has_changed() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set(
        "/memory/page",
        b"text/html\r\n<!--# include virtual=\"/memory/part\" --> <!--# include key -->",
    );
    memcached.set("/memory/part", b"text/plain\r\none");
    memcached.set("key", b"two");
    let (reply, tag) = tagged(&kirin, "/memory/page");
    assert_eq!((reply.text().as_str(), reply.field("last-modified")), ("one two", None));
    let again = |tag: &str| {
        kirin.connect().request(
            "GET",
            "/memory/page",
            &format!("If-None-Match: {tag}\r\nRange: bytes=0-1\r\n"),
        )
    };
    assert_eq!(again(&tag).status, 304);
    for (key, value) in [("/memory/part", "text/plain\r\nnew"), ("key", "new"), ("key", "")] {
        memcached.set(key, value.as_bytes());
        let (_, new_tag) = tagged(&kirin, "/memory/page");
        assert_ne!(new_tag, tag);
        assert_eq!((again(&tag).status, again(&new_tag).status), (200, 304));
    }
}

#[test]
fn another_server_is_not_asked_and_the_log_says_so() {
    let (_site, kirin, mut memcached) = serve();
    for name in ["http://other.test/a", "//other.test/a", "https://test:444/"] {
        let page = format!("text/html\r\n<!--# include virtual=\"{name}\" -->");
        memcached.set("/d/page", page.as_bytes());
        let reply = kirin.get("/d/page");
        assert_eq!(
            (reply.text().as_str(), reply.field("cache-control")),
            (ERROR, Some("no-store")),
            "{name}"
        );
        kirin.wait_for_log(&format!("include={name}"));
    }
}

#[test]
fn a_part_has_the_variables_of_its_page() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set(
        "/bar",
        b"text/html\r\n[<!--# echo var=\"title\" -->]<!--# set var=\"title\" value=\"bar's\" -->",
    );
    memcached.set("/outer", b"text/html\r\n(<!--# include virtual=\"/bar\" -->)");
    for (page, shown) in [
        (
            "<!--# set var=\"title\" value=\"<a>\" --><!--# include virtual=\"/bar\" -->",
            "[&lt;a&gt;]",
        ),
        ("<!--# set var=\"title\" value=\"a\" --><!--# include virtual=\"/outer\" -->", "([a])"),
        ("<!--# include virtual=\"/bar\" -->", "[(none)]"),
        ("<!--# include virtual=\"/bar\" --><!--# echo var=\"title\" -->", "[(none)](none)"),
        (
            "<!--# include virtual=\"/bar\" wait=\"yes\" --><!--# echo var=\"title\" -->",
            "[(none)]bar&#39;s",
        ),
        // Two parts do not see each other, and neither does a part that waits for a task.
        (
            "<!--# set var=\"title\" value=\"a\" --><!--# include virtual=\"/app/stream\" --><!--# include virtual=\"/bar\" --><!--# include virtual=\"/bar\" -->",
            "part 1 part 2 part 3 [a][a]",
        ),
    ] {
        assert_eq!(show(&kirin, &mut memcached, page), shown, "{page}");
    }
}

#[test]
fn a_page_that_multiplies_ends_and_the_log_says_so_once() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set(
        "/fan",
        format!("text/html\r\n{}.", "<!--# include virtual=\"/fan\" -->".repeat(50)).as_bytes(),
    );
    let reply = kirin.get("/fan");
    assert_eq!((reply.status, reply.field("cache-control")), (200, Some("no-store")));
    kirin.wait_for_log("too deep or are too many");
    assert_eq!(kirin.log().matches("too deep or are too many").count(), 1);
}
