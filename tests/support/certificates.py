"""Certificates for tests, made by openssl while they run: an authority and what it signs."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HAS_OPENSSL = shutil.which("openssl") is not None


@dataclass(frozen=True)
class Certificate:
    """Paths of a certificate and of its key, each alone, and both in one file; all PEM."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """Signs certificates of the host 127.0.0.1; its own is `path`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.path = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        new = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(self._key), "-subj", f"/CN={name}"]
        usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]  # Python 3.13 demands it
        _openssl("req", "-x509", *new, *usage, "-days", "2", "-out", str(self.path))
        self._extensions = folder / f"{name}.extensions"
        self._extensions.write_text("authorityKeyIdentifier = keyid\n")

    def sign(
        self, name: str, *, host: str = "127.0.0.1", expired: bool = False, password: str = ""
    ) -> Certificate:
        """A certificate of this name; its key is encrypted if there is a password."""
        key, request, found = (self._folder / f"{name}.{end}" for end in ("key", "csr", "pem"))
        kind = "IP" if host[0].isdigit() else "DNS"
        subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName={kind}:{host}"]
        locked = ["-passout", f"pass:{password}"] if password else ["-nodes"]
        new = ["-newkey", "rsa:2048", *locked, "-keyout", str(key), *subject]
        _openssl("req", *new, "-out", str(request))
        signer = ["-CA", str(self.path), "-CAkey", str(self._key), "-CAcreateserial"]
        signer += ["-extfile", str(self._extensions)]
        days = "-1" if expired else "2"
        wanted = ["-in", str(request), *signer, "-copy_extensions", "copy", "-days", days]
        _openssl("x509", "-req", *wanted, "-out", str(found))
        both = self._folder / f"{name}-both.pem"
        both.write_text(key.read_text() + found.read_text())
        return Certificate(found, key, both)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
