//! Field values that HTTP/2 and HTTP/3 do not allow: in requests, trailers and responses.

use super::*;

const FIELDS_APP: &str = r#"
sub {
    my $env = shift;
    my $body = do { local $/; my $input = $env->{'psgi.input'}; <$input> } // '';
    my @fields = $env->{PATH_INFO} eq '/app/fields'
        ? ('TE' => 'gzip', 'Keep-Alive' => 'timeout=1', 'Proxy-Connection' => 'x', 'X-Blanks' => '  a b ') : ();
    [200, ['Content-Type' => 'text/plain', @fields], ["A=$env->{HTTP_A}"]];
};
"#;

#[test]
fn hop_by_hop_fields_of_an_application_are_left_out() {
    let served = serve_app(FIELDS_APP);
    served.each(|version, client| {
        let reply = client.get("/app/fields");
        assert_eq!(reply.status, 200, "{version}: {reply:?}");
        for name in ["te", "keep-alive", "proxy-connection"] {
            assert_eq!(reply.field(name), None, "{version}: {reply:?}");
        }
        assert_eq!(reply.field("x-blanks"), Some("a b"), "{version}: {reply:?}");
    });
}

#[test]
fn a_request_whose_field_value_has_blanks_at_either_end_is_refused() {
    let served = serve_app(FIELDS_APP);
    served.each(|version, client| {
        for (value, is_good) in
            [("b c", true), (" bc", false), ("bc ", false), ("\tbc", false), ("b", true)]
        {
            let fields = &[("a", value)];
            let request =
                SentRequest { method: "GET", target: "/app", fields, ..SentRequest::default() };
            let what = format!("{version}: {value:?}");
            assert_answered(client.send(request), is_good, &what, &format!("A={value}"));
        }
    });
}

#[test]
fn a_request_whose_trailer_has_blanks_at_either_end_is_refused() {
    let served = serve_app(FIELDS_APP);
    served.each(|version, client| {
        for (value, is_good) in [("b c", true), (" bc", false), ("bc\t", false), ("b", true)] {
            let request = SentRequest {
                method: "POST",
                target: "/app",
                body: b"body",
                trailers: &[("x-a", value)],
                ..SentRequest::default()
            };
            let what = format!("{version}: {value:?}");
            assert_answered(client.send(request), is_good, &what, "A=");
        }
    });
}

/// Asserts that a good request has this response, and that another one resets its stream.
fn assert_answered(reply: Result<Answer, Reset>, is_good: bool, what: &str, expected: &str) {
    match reply {
        Ok(reply) => {
            assert!(is_good, "{what} is answered: {reply:?}");
            assert_eq!((reply.status, reply.text().as_str()), (200, expected), "{what}");
        }
        Err(reset) => assert_eq!((is_good, reset), (false, Reset::Malformed), "{what}"),
    }
}
