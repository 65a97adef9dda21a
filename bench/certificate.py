"""Makes a certificate for the servers of a comparison: ECDSA P-256, the default of Let's Encrypt.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from host import BenchError


@dataclass(frozen=True)
class Certificate:
    """The certificate and its key, as PEM files."""

    chain: Path
    key: Path


def make(directory: Path) -> Certificate:
    """Returns the certificate in a directory, and makes it if it is not there. The servers of a
    comparison share one.
    """
    made = Certificate(directory / "chain.pem", directory / "key.pem")
    if made.chain.exists():
        return made
    done = subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", made.key, "-out", made.chain, "-days", "30", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise BenchError(f"openssl made no certificate:\n{done.stderr}")
    return made
