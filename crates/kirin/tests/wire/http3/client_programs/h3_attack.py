"""Attacks a server of HTTP/3, and says what it did.

    h3_attack.py URL            all attacks
    h3_attack.py URL NAME...    attacks with these names, or of these groups
    h3_attack.py URL 2/3 NAME...
                                the second third of them
    h3_attack.py --list         the names

It prints a line of JSON for each attack: its group and its name, what the server did, what it
should have done by which section of which RFC, and whether these agree. The server must have
/hello.txt and /large.bin, and /app/body for POST. It ends with 1 if anything did not agree."""
import json
import re
import sys
import time

import attack_floods
import attack_frames
import attack_messages
import attack_packets
import attack_qpack
import attack_transport
from raw_connection import RawConnection

GROUPS = {
    "frames": attack_frames.ATTACKS,
    "messages": attack_messages.ATTACKS,
    "qpack": attack_qpack.ATTACKS,
    "transport": attack_transport.ATTACKS,
    "packets": attack_packets.ATTACKS,
    "floods": attack_floods.ATTACKS,
}


def run(group, attack, url):
    """Runs an attack and returns its line."""
    opened, start = [], time.monotonic()

    def connect(**options):
        opened.append(RawConnection(url, **options))
        return opened[-1]

    connect.url = url
    try:
        outcome = attack.run(connect)
        did, is_good = str(outcome), attack.expectation.is_met(outcome)
    except Exception as error:
        did, is_good = f"{type(error).__name__}: {error}", False
    for connection in opened:
        connection.link.close()
    return {"group": group, "name": attack.name, "ok": is_good, "did": did,
            "should": attack.expectation.text, "rfc": attack.section,
            "seconds": round(time.monotonic() - start, 1)}


def main():
    names, part, parts = sys.argv[2:], 1, 1
    if names and re.fullmatch(r"\d+/\d+", names[0]):
        part, parts = map(int, names.pop(0).split("/"))
    wanted = [(group, attack) for group, attacks in GROUPS.items() for attack in attacks
              if not names or group in names or attack.name in names]
    wanted = wanted[part - 1::parts]
    if sys.argv[1] == "--list":
        for group, attack in wanted:
            print(f"{group}: {attack.name}: {attack.expectation.text} ({attack.section})")
        return
    if not wanted:
        sys.exit("there is no such attack")
    lines = []
    for group, attack in wanted:
        lines.append(run(group, attack, sys.argv[1]))
        print(json.dumps(lines[-1]), flush=True)
    sys.exit(not all(line["ok"] for line in lines))


main()
