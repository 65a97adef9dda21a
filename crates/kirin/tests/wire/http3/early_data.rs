//! Early data (0-RTT): the requests that a client sends before its handshake.

use super::clients::in_front_of;
use super::*;

/// Returns the configuration with early data.
fn config() -> String {
    CONFIG.replace("http3 = true\n", "http3 = true\nearly_data = true\n")
}

/// Starts Kirin with early data and metrics.
fn serve_early() -> Served {
    serve(&format!("{}{ADMIN}", config()))
}

/// Connects again with a ticket and a token of the client, and sends requests in early data.
/// Returns what the client says about the handshake, and the streams of the requests.
fn come_again(client: &mut Http3Client, served: &Served, early: Value) -> (Value, Vec<u64>) {
    client.ask(&json!({ "do": "ticket", "token": true }));
    let mut command = json!({ "do": "connect", "url": served.url(), "resume": true });
    command["token"] = true.into();
    command["early"] = early;
    let mut handshake = client.ask(&command);
    let streams = serde_json::from_value(handshake["streams"].take()).expect("their streams");
    (handshake, streams)
}

/// Returns the number of requests that the application has counted.
fn counted(served: &Served) -> usize {
    std::fs::read_to_string(served.site.path("asked")).unwrap_or_default().lines().count()
}

#[test]
fn safe_requests_are_answered_before_the_handshake_and_others_get_425() {
    let served = serve_early();
    let mut client = served.connect();
    let early = json!([
        { "path": "/app/env" },
        { "path": "/hello.txt" },
        { "path": "/app/count", "method": "POST", "text": "a" },
        { "path": "/app/count", "method": "DELETE" },
        { "path": "/app/env", "fields": [["early-data", "1"]] },
        { "path": "/app/env", "fields": [["early-data", "0"]] },
    ]);
    let (handshake, streams) = come_again(&mut client, &served, early);
    assert_eq!(handshake["early_accepted"], true, "{handshake}");
    let replies = client.finish(&streams);
    let statuses: Vec<u64> = replies.iter().map(Http3Reply::status).collect();
    assert_eq!(statuses, [200, 200, 425, 425, 200, 425], "{replies:?}");
    for reply in [&replies[0], &replies[4]] {
        assert!(reply.text().contains("HTTP_EARLY_DATA=1\n"), "{reply:?}");
    }
    assert_eq!(replies[1].text(), "hello\n");
    // The same requests behind the handshake are as always.
    let later = client.get("/app/env");
    assert!(later.text().contains("HTTP_EARLY_DATA=\n"), "{later:?}");
    assert_eq!(counted(&served), 0, "no request that may change something was answered");
    assert_eq!(client.request("POST", "/app/count", &[]).status(), 200);
    assert_eq!(counted(&served), 1);
    assert_eq!(served.metric("kirin_http3_early_requests_total"), 3);
    served.wait_for_line("\"POST /app/count HTTP/3.0\" 425 ");
    served.assert_is_well();
}

#[test]
fn a_server_learns_of_early_data_and_its_425_reaches_the_client() {
    let backend = Backend::answering(|received| {
        let status = match received.field("early-data") {
            Some("1") => "425 Too Early",
            _ => "200 OK",
        };
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")
    });
    let served = serve(&in_front_of(&config(), &backend, ""));
    let mut client = served.connect();
    let (handshake, streams) = come_again(&mut client, &served, json!([{ "path": "/" }]));
    assert_eq!(handshake["early_accepted"], true, "{handshake}");
    assert_eq!(client.finish(&streams)[0].status(), 425);
    assert_eq!(client.get("/").status(), 200, "the client asks again");
}

#[test]
fn a_client_that_does_not_show_its_address_gets_425_in_early_data() {
    let served = serve(&config());
    let mut client = served.connect();
    client.ask(&json!({ "do": "ticket" }));
    let mut command = json!({ "do": "connect", "url": served.url(), "resume": true });
    command["early"] = json!([{ "path": "/app/count" }]);
    let handshake = client.ask(&command);
    assert_eq!(handshake["early_accepted"], true, "{handshake}");
    let stream = handshake["streams"][0].as_u64().expect("a stream");
    assert_eq!(client.finish(&[stream])[0].status(), 425);
    assert_eq!(client.get("/app/count").text(), "counted", "the handshake shows it");
    assert_eq!(counted(&served), 1);
}

#[test]
fn a_recorded_packet_is_answered_once() {
    let served = serve_early();
    let mut client = served.connect();
    let early = json!([{ "path": "/app/count" }]);
    let (handshake, streams) = come_again(&mut client, &served, early);
    assert_eq!(handshake["early_accepted"], true, "{handshake}");
    assert_eq!(client.finish(&streams)[0].text(), "counted");
    assert_eq!(counted(&served), 1);
    let replayed = client.ask(&json!({ "do": "replay" }));
    assert!(replayed["datagrams"].as_u64() >= Some(1), "{replayed}");
    served.assert_is_well();
    served.assert_is_well();
    assert_eq!(counted(&served), 1, "the copy was answered");
    assert_eq!(served.metric("kirin_http3_early_requests_total"), 1);
    // Nor does its own client resume with the same ticket again.
    let command = json!({ "do": "connect", "url": served.url(), "resume": true, "ticket": 0 });
    assert_eq!(client.ask(&command)["resumed"], true, "the other ticket of the first connection");
    let handshake = client.ask(&command);
    assert_eq!(handshake["resumed"], false, "{handshake}");
    assert_eq!(client.get("/hello.txt").text(), "hello\n");
}

#[test]
fn there_is_no_early_data_unless_it_is_configured() {
    let served = serve(CONFIG);
    let mut client = served.connect();
    let ticket = client.ask(&json!({ "do": "ticket" }));
    assert_eq!(ticket["early_bytes"], Value::Null, "{ticket}");
    let command = json!({ "do": "connect", "url": served.url(), "resume": true });
    let handshake = client.ask(&command);
    assert_eq!(
        (&handshake["resumed"], &handshake["early_accepted"]),
        (&json!(true), &json!(false))
    );
}

#[test]
fn sessions_with_early_data_end_with_a_reload() {
    let served = serve(&config());
    let mut client = served.connect();
    client.ask(&json!({ "do": "ticket" }));
    let (is_done, said) = said(&served.site, &["reload"]);
    assert!(is_done, "{said}");
    let command = json!({ "do": "connect", "url": served.url(), "resume": true });
    let handshake = client.ask(&command);
    assert_eq!(handshake["resumed"], false, "{handshake}");
    assert_eq!(client.get("/hello.txt").text(), "hello\n");
    // The next session has early data again.
    let (handshake, streams) = come_again(&mut client, &served, json!([{ "path": "/hello.txt" }]));
    assert_eq!(handshake["early_accepted"], true, "{handshake}");
    assert_eq!(client.finish(&streams)[0].text(), "hello\n");
}

#[test]
fn early_data_that_cannot_be_is_an_error_of_the_configuration() {
    let site = Site::new();
    Authority::new("Kirin test authority").issue(&["localhost"]).write(&site, "a");
    let tls = |more: &str| {
        format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\ncertificates = \
             [{{ chain = \"a.pem\", key = \"a.key\" }}]\nearly_data = true\n{more}\
             [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n"
        )
    };
    for (more, expected) in [
        ("http3 = false\n", "`early_data` is for HTTP/3, which `http3 = false` turns off"),
        ("client_ca = \"a.pem\"\n", "`early_data` is not possible with `client_ca`"),
    ] {
        std::fs::create_dir_all(site.path("public")).expect("a folder");
        std::fs::write(site.path("kirin.toml"), tls(more)).expect("a configuration");
        let (is_good, said) = said(&site, &["check", "--config", "kirin.toml"]);
        assert!(!is_good && said.contains(expected) && said.contains("kirin.toml:5:"), "{said}");
    }
}
