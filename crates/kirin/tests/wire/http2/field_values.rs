//! Field values that HTTP/2 does not allow: in requests, trailers and responses.

use h2::Reason;
use http::{HeaderMap, HeaderName, HeaderValue};
use kirin_tests::{Http2Client, Http2Reply, Kirin, Site};

const APP: &str = r#"
sub {
    my $env = shift;
    my $body = do { local $/; my $input = $env->{'psgi.input'}; <$input> } // '';
    my @fields = $env->{PATH_INFO} eq '/fields'
        ? ('TE' => 'gzip', 'Keep-Alive' => 'timeout=1', 'Proxy-Connection' => 'x', 'X-Blanks' => '  a b ') : ();
    [200, ['Content-Type' => 'text/plain', @fields], ["A=$env->{HTTP_A}"]];
};
"#;

fn serve() -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(
        &site,
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
         [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n",
    );
    (site, kirin)
}

#[test]
fn hop_by_hop_fields_of_an_application_are_left_out_over_http_2() {
    let (_site, kirin) = serve();
    let reply = Http2Client::connect(kirin.address()).get("/fields");
    assert_eq!(reply.status, 200, "{:?}", reply.fields);
    for name in ["te", "keep-alive", "proxy-connection"] {
        assert_eq!(reply.field(name), None, "{:?}", reply.fields);
    }
    assert_eq!(reply.field("x-blanks"), Some("a b"), "{:?}", reply.fields);
}

#[test]
fn a_request_whose_field_value_has_blanks_at_either_end_is_refused() {
    let (_site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    for (value, is_good) in
        [("b c", true), (" bc", false), ("bc ", false), ("\tbc", false), ("b", true)]
    {
        let pending = client.begin("GET", "/", &[("a", value)]);
        assert_answered(client.try_finish(pending), is_good, value, &format!("A={value}"));
    }
}

#[test]
fn a_request_whose_trailer_has_blanks_at_either_end_is_refused() {
    let (_site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    for (value, is_good) in [("b c", true), (" bc", false), ("bc\t", false), ("b", true)] {
        let trailers = HeaderMap::from_iter([(
            HeaderName::from_static("x-a"),
            HeaderValue::from_str(value).expect("a value"),
        )]);
        let reply = client.try_send_with_trailers("POST", "/", &[], b"body", Some(trailers));
        assert_answered(reply, is_good, value, "A=");
    }
}

/// Asserts that a good request has this response, and that another one resets its stream.
fn assert_answered(
    reply: Result<Http2Reply, h2::Error>,
    is_good: bool,
    value: &str,
    expected: &str,
) {
    match reply {
        Ok(reply) => {
            let text = reply.text();
            assert!(is_good, "{value:?} is answered with {}: {text}", reply.status);
            assert_eq!((reply.status, text.as_str()), (200, expected), "{value:?}");
        }
        Err(error) => {
            let is_reset = error.is_reset() && error.is_remote();
            assert!(is_reset && !is_good, "{value:?}: {error}");
            assert_eq!(error.reason(), Some(Reason::PROTOCOL_ERROR), "{value:?}: {error}");
        }
    }
}
