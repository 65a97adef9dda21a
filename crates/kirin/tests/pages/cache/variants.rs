//! The forms of one response: by `Vary`, by codings, by directives.

use std::io::Read;

use super::{is_hit, serve, status};

#[test]
fn each_variant_goes_to_the_requests_that_select_it() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/v?cc=max-age=60&Vary=Accept-Language,X-Device";
    let mut get = |fields: &str| client.request("GET", target, fields);
    assert_eq!(get("Accept-Language: ja\r\n").text(), "call 1");
    let other = get("Accept-Language: en\r\n");
    assert_eq!(other.text(), "call 2");
    assert!(status(&other).starts_with("Kirin; fwd=vary-miss"), "{}", other.head);
    assert_eq!(get("Accept-Language: ja\r\nX-Device: phone\r\n").text(), "call 3");
    for (fields, text) in [
        ("Accept-Language:  ja \r\n", "call 1"),
        ("Accept-Language: en\r\nAccept: */*\r\n", "call 2"),
        ("X-Device: phone\r\nAccept-Language: ja\r\n", "call 3"),
    ] {
        let reply = get(fields);
        assert_eq!((reply.text().as_str(), is_hit(&reply)), (text, true), "{fields}");
    }
    assert_eq!(get("").text(), "call 4");
}

#[test]
fn hits_are_compressed_once_and_validated_by_the_tag_that_the_client_has() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/zip?cc=max-age=60&ETag=%22e%22&bytes=5000";
    let plain = client.get(target);
    assert_eq!(plain.body.len(), 5000);
    let reply = client.request("GET", target, "Accept-Encoding: gzip\r\n");
    assert!(is_hit(&reply), "{}", reply.head);
    assert_eq!(
        (reply.field("content-encoding"), reply.field("etag")),
        (Some("gzip"), Some("\"e-gzip\""))
    );
    assert!(
        reply.field("vary").is_some_and(|vary| vary.contains("Accept-Encoding")),
        "{}",
        reply.head
    );
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut body).expect("gzip");
    assert_eq!(body, plain.body);
    let fields = "Accept-Encoding: gzip\r\nIf-None-Match: \"e-gzip\"\r\n";
    let not_modified = client.request("GET", target, fields);
    assert_eq!((not_modified.status, not_modified.field("etag")), (304, Some("\"e-gzip\"")));
    // The same holds if the response is not from memory.
    let other = "/zip/n?cc=no-cache&ETag=%22e%22&bytes=5000";
    client.get(other);
    let not_modified = client.request("GET", other, fields);
    assert_eq!(
        (not_modified.status, not_modified.field("etag")),
        (304, Some("\"e-gzip\"")),
        "{}",
        not_modified.head
    );
    let coded = client.request("GET", other, "Accept-Encoding: gzip\r\n");
    assert_eq!(
        (coded.status, coded.field("content-encoding")),
        (200, Some("gzip")),
        "{}",
        coded.head
    );
    assert_eq!(tested.count("/zip"), 1);
}

#[test]
fn directives_in_stored_responses_are_carried_out_for_each_request() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/ssi?cc=max-age=60&text=:%3C!--%23include+virtual=%22/part%22--%3E";
    assert_eq!(client.get(target).text(), "call 1:call 1");
    let reply = client.get(target);
    assert_eq!((reply.text().as_str(), is_hit(&reply)), ("call 1:call 2", true), "{}", reply.head);
    let part = client.request("GET", target, "Range: bytes=0-1\r\n");
    assert_eq!((part.status, part.text().as_str()), (200, "call 1:call 3"));
    assert_eq!(tested.count("/ssi"), 1);
}
