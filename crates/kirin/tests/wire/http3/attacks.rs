//! Attacks on HTTP/3, QPACK and QUIC by h3_attack.py, of which each line says what the RFCs want.

use serde_json::Value;

use super::*;

/// The attacks that QUIC's library does not answer as the RFC says, and why that is borne.
const NOT_ANSWERED: [(&str, &str); 2] = [
    (
        "an end before what was sent",
        "quinn-proto does not look at the end of a STREAM frame without data (RFC 9000 section \
         4.5); the request ends, and nothing else happens",
    ),
    (
        "a move to an address that says no more",
        "quinn-proto fills the datagram with its challenge; http3/address_proof.rs lets one pass \
         for each change of the address, and limits the changes",
    ),
];

/// Runs attacks of a group, and sees that each has the outcome that it should have.
fn attack(words: &[&str], least: usize) {
    let served = serve(CONFIG);
    let mut command = python("h3_attack.py");
    command.arg(served.url()).args(words);
    let output = run(&mut command);
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Value> = text
        .lines()
        .map(|line| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{error}: {}", described(&command, &output)))
        })
        .collect();
    assert!(rows.len() >= least, "{} attacks: {}", rows.len(), described(&command, &output));
    let is_wrong = |row: &&Value| {
        let is_borne = NOT_ANSWERED.iter().any(|(name, _)| row["name"] == **name);
        // Once the library answers such an attack, it needs no exception.
        (row["ok"] == true) == is_borne
    };
    let wrong: Vec<_> = rows.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", served.kirin.log());
    served.assert_is_well();
}

#[test]
fn wrong_frames_and_streams_end_the_connection() {
    attack(&["frames"], 80);
}

#[test]
fn malformed_requests_are_refused() {
    attack(&["messages"], 60);
}

#[test]
fn wrong_field_sections_and_instructions_end_the_connection() {
    attack(&["qpack"], 40);
}

#[test]
fn wrong_frames_of_quic_end_the_connection() {
    attack(&["transport"], 40);
}

#[test]
fn packets_of_no_connection_get_few_answers() {
    attack(&["1/2", "packets"], 10);
}

#[test]
fn other_packets_of_no_connection_get_few_answers() {
    attack(&["2/2", "packets"], 10);
}

#[test]
fn floods_do_not_keep_others_from_being_served() {
    attack(&["1/2", "floods"], 20);
}

#[test]
fn other_floods_do_not_keep_others_from_being_served() {
    attack(&["2/2", "floods"], 20);
}
