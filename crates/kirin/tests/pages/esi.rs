//! Edge side includes through the program: applications, files and pages of the store.

use kirin_tests::{Kirin, Memcached, Site, run_kirin};

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\", \"app:web\"]\nesi = true\n\
    [[route]]\npath = \"/plain\"\ntry = [\"app:web\"]\n";

const APP: &str = r#"
use v5.16; use warnings;
my $page = <<'HTML';
<esi:remove>no ESI</esi:remove><!--esi <esi:include src="/part?a=$(QUERY_STRING{x})"/>--><esi:vars>[$(HTTP_COOKIE{name}|nobody)]</esi:vars>
<esi:include src="/die" alt="/part"/> <esi:include src="/die"/> <esi:include src="/none" alt="/die" onerror="continue"/>
<esi:include src="http://$(HTTP_HOST)/part"/> <esi:include src="http://other.example/part"/><esi:comment text="done"/>
HTML
sub {
    my $env = shift;
    my $answer = sub { [200, ['Content-Type' => $_[0], 'Surrogate-Control' => 'content="ESI/1.0"'], [$_[1]]] };
    my $path = $env->{PATH_INFO};
    return $answer->('text/plain', "<part $env->{QUERY_STRING}>") if $path eq '/part';
    return $answer->('text/plain', $env->{HTTP_SURROGATE_CAPABILITY} // 'none') if $path =~ /capability/;
    return $answer->('text/plain', '<esi:vars>$(HTTP_HOST)</esi:vars>') if $path =~ /text/;
    return $answer->('text/html', $page) if $path =~ /page/;
    die "a bad day\n" if $path eq '/die';
    [404, [], ['none']];
};
"#;

const ERROR: &str = "[an error occurred while processing the directive]";

fn serve() -> (Site, Kirin, Memcached) {
    let site = Site::new()
        .with("app.psgi", APP)
        .with(
            "public/file.html",
            "<esi:include src=\"part\"/>|<!--# echo var=\"uri\" -->|<esi:include src=\"/text\"/>",
        )
        .with("public/file.txt", "<esi:vars>$(HTTP_HOST)</esi:vars>");
    let kirin = Kirin::start(&site, CONFIG);
    let memcached = Memcached::connect(&site.path("m.sock"));
    (site, kirin, memcached)
}

#[test]
fn responses_of_an_application_are_built() {
    let (_site, kirin, _) = serve();
    for _ in 0..2 {
        let fields = "Cookie: name=<Mary>\r\n";
        let reply = kirin.connect().request("GET", "/page?x=1%202&y", fields);
        let shown = format!(" <part a=1%202>[&lt;Mary&gt;]\n<part > {ERROR} \n<part > {ERROR}\n");
        assert_eq!(reply.text(), shown);
        assert_eq!(reply.field("surrogate-control"), None, "{}", reply.head);
    }
    assert!(kirin.get("/page").text().contains("[nobody]"));
}

#[test]
fn surrogate_fields_reach_the_application_and_not_the_client() {
    let (_site, kirin, _) = serve();
    let reply = kirin.get("/capability");
    assert_eq!(reply.text(), "kirin=\"ESI/1.0\"");
    assert_eq!(reply.field("surrogate-control"), None, "{}", reply.head);
    let reply = kirin.get("/plain/capability");
    assert_eq!(reply.text(), "none");
    assert_eq!(reply.field("surrogate-control"), Some("content=\"ESI/1.0\""));
    assert!(kirin.get("/plain/page").text().starts_with("<esi:remove>"));
}

#[test]
fn html_files_are_built_and_others_stay_unchanged() {
    let (_site, kirin, _) = serve();
    let page = kirin.get("/file.html").text();
    assert_eq!(page, "<part >|<!--# echo var=\"uri\" -->|<esi:vars>$(HTTP_HOST)</esi:vars>");
    assert_eq!(kirin.get("/file.txt").text(), "<esi:vars>$(HTTP_HOST)</esi:vars>");
}

#[test]
fn pages_of_the_store_have_both_syntaxes() {
    let (_site, kirin, mut memcached) = serve();
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSurrogate-Control: content=\"ESI/1.0\"\r\n\r\n\
        <esi:vars>$(QUERY_STRING{a}|none)</esi:vars> <!--# include fragment -->";
    memcached.set("/stored", page.as_bytes());
    memcached.set("fragment", b"<esi:include src=\"/part\"/>");
    assert_eq!(kirin.get("/stored").text(), "none <part >");
    memcached.set("fragment", b"<esi:vars>$(HTTP_HOST|none)</esi:vars>");
    let reply = kirin.get("/stored");
    assert_eq!(reply.text(), "none test");
    assert_eq!(reply.field("surrogate-control"), None, "{}", reply.head);
    let etag = reply.field("etag").expect("an ETag").to_owned();
    let again = kirin.connect().request("GET", "/stored", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!(again.status, 304, "{}", again.head);
    memcached.set("/static", b"text/html\r\nno tags, and an ETag of its own");
    let reply = kirin.get("/static");
    assert!(reply.field("accept-ranges").is_some(), "{}", reply.head);
}

#[test]
fn esi_without_ssi_is_refused() {
    let site = Site::new()
        .with("kirin.toml", "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\n[[route]]\npath = \"/\"\ntry = [\"store\"]\nesi = true\nssi = false\n");
    let output = run_kirin(&site, &["check"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("ssi = false"), "{message}");
}
