"""Attacks: their names, what they do, and what the server must do about them."""
import dataclasses
import typing

from raw_connection import code_name


@dataclasses.dataclass
class Expectation:
    """What a server must do."""

    text: str
    is_met: typing.Callable


def closes(*codes):
    """Returns the expectation that the connection ends with one of these codes of HTTP/3."""
    def is_met(outcome):
        closed = outcome.closed
        return closed is not None and closed["by"] == "server" \
            and closed["kind"] == "application" and closed["code"] in codes
    return Expectation(f"closes with {' or '.join(map(code_name, codes))}", is_met)


def transport_error(*codes):
    """Returns the expectation that the connection ends with one of these codes of QUIC. A server
    may always say PROTOCOL_VIOLATION or INTERNAL_ERROR (RFC 9000 section 11)."""
    def is_met(outcome):
        closed = outcome.closed
        return closed is not None and closed["by"] == "server" \
            and closed["kind"] == "transport" and closed["code"] in (*codes, 0xa, 0x1)
    names = " or ".join(code_name(code, "transport") for code in codes)
    return Expectation(f"closes with {names}", is_met)


def refuses(code=0x10e):
    """Returns the expectation that the stream ends with this code or with a status of 4xx, and that
    the connection serves on (RFC 9114 section 4.1.2)."""
    def is_met(outcome):
        stream = outcome.stream
        is_refused = stream.reset == code or stream.status is not None \
            and 400 <= stream.status < 500 or stream.status == 501
        return is_refused and outcome.serves
    return Expectation(f"resets the stream with {code_name(code)} or says 4xx", is_met)


def answers(*statuses):
    """Returns the expectation of one of these statuses, and of a connection that serves on."""
    def is_met(outcome):
        return outcome.status in statuses and outcome.stream.is_complete and outcome.serves
    return Expectation(f"answers {' or '.join(map(str, statuses))}", is_met)


SERVES_ON = Expectation("serves on", lambda outcome: outcome.serves)
# Such an attack may be ended or not. The memory and the time of the server matter, and that others
# are served.
HOLDS = Expectation("serves on, or closes with a code",
                    lambda outcome: outcome.serves or outcome.closed is not None
                    and outcome.closed["by"] == "server")


def either(*expectations):
    """Returns the expectation that one of these is met."""
    return Expectation(" or ".join(each.text for each in expectations),
                       lambda outcome: any(each.is_met(outcome) for each in expectations))


@dataclasses.dataclass
class Attack:
    """An attack. `run` gets a function that opens a connection, and returns the outcome."""

    name: str
    section: str
    expectation: Expectation
    run: typing.Callable
