//! The examples of RFC 7541, Appendix C.

use super::{Decoder, Pair, decoded, hex, pairs};

/// Decodes the blocks of one connection and compares their fields.
fn check(decoder: &mut Decoder, blocks: &[(&str, Vec<Pair>)]) {
    for (block, fields) in blocks {
        assert_eq!(decoded(decoder, &hex(block)).as_ref(), Ok(fields), "{block}");
    }
}

#[test]
fn each_representation_of_appendix_c_2_is_decoded() {
    for (block, field) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            ("custom-key", "custom-header"),
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", (":path", "/sample/path")),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", ("password", "secret")),
        ("82", (":method", "GET")),
    ] {
        check(&mut Decoder::new(4096), &[(block, pairs(&[field]))]);
    }
}

fn requests() -> [Vec<Pair>; 3] {
    let start = |scheme, path| {
        [
            (":method", "GET"),
            (":scheme", scheme),
            (":path", path),
            (":authority", "www.example.com"),
        ]
    };
    let one = start("http", "/");
    let three = start("https", "/index.html");
    [
        pairs(&one),
        pairs(&[&one[..], &[("cache-control", "no-cache")]].concat()),
        pairs(&[&three[..], &[("custom-key", "custom-value")]].concat()),
    ]
}

#[test]
fn the_requests_of_appendix_c_3_are_decoded() {
    let [one, two, three] = requests();
    check(
        &mut Decoder::new(4096),
        &[
            ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", one),
            ("8286 84be 5808 6e6f 2d63 6163 6865", two),
            ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", three),
        ],
    );
}

#[test]
fn the_huffman_coded_requests_of_appendix_c_4_are_decoded() {
    let [one, two, three] = requests();
    check(
        &mut Decoder::new(4096),
        &[
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", one),
            ("8286 84be 5886 a8eb 1064 9cbf", two),
            ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", three),
        ],
    );
}

fn responses() -> [Vec<Pair>; 3] {
    let list = |status, date| {
        [
            (":status", status),
            ("cache-control", "private"),
            ("date", date),
            ("location", "https://www.example.com"),
        ]
    };
    let early = "Mon, 21 Oct 2013 20:13:21 GMT";
    let more = [
        ("content-encoding", "gzip"),
        ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
    ];
    let third = list("200", "Mon, 21 Oct 2013 20:13:22 GMT");
    [pairs(&list("302", early)), pairs(&list("307", early)), pairs(&[&third[..], &more].concat())]
}

/// Returns a decoder whose table has 256 octets, as in the examples of responses.
fn small_decoder() -> Decoder {
    let mut decoder = Decoder::new(256);
    check(&mut decoder, &[("3fe1 01", Vec::new())]);
    decoder
}

#[test]
fn the_responses_of_appendix_c_5_evict_entries() {
    let [one, two, three] = responses();
    check(
        &mut small_decoder(),
        &[
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
                 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 \
                 6c65 2e63 6f6d",
                one,
            ),
            ("4803 3330 37c1 c0bf", two),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d \
                 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 \
                 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e \
                 3d31",
                three,
            ),
        ],
    );
}

#[test]
fn the_huffman_coded_responses_of_appendix_c_6_are_decoded() {
    let [one, two, three] = responses();
    check(
        &mut small_decoder(),
        &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
                 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                one,
            ),
            ("4883 640e ffc1 c0bf", two),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab \
                 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f \
                 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                three,
            ),
        ],
    );
}
