"""Certificates of a small authority, made in a folder."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM


@attrs.frozen
class Files:
    """A certificate and its key, in PEM files."""

    certificate: str
    key: str


@attrs.define
class Authority:
    """Signs certificates for 127.0.0.1; its own one is `path`."""

    folder: Path
    name: str = "authority"
    _key: rsa.RSAPrivateKey = attrs.field(init=False)
    _own: x509.Certificate = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._key = rsa.generate_private_key(65537, 2048)
        self._own = self._signed(self.name, self._key, self.name, authority=True, days=(-1, 30))
        Path(self.path).write_bytes(self._own.public_bytes(_PEM))

    @property
    def path(self) -> str:
        return str(self.folder / f"{self.name}.pem")

    def issue(self, name: str, days: tuple[int, int] = (-1, 30), password: str | None = None) -> Files:
        """Create the files of a certificate that is valid between these days from now; existing ones are replaced."""
        key = rsa.generate_private_key(65537, 2048)
        certificate = self._signed(name, key, self.name, authority=False, days=days)
        encryption = (
            serialization.NoEncryption()
            if password is None
            else serialization.BestAvailableEncryption(password.encode())
        )
        files = Files(str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key"))
        Path(files.certificate).write_bytes(certificate.public_bytes(_PEM))
        Path(files.key).write_bytes(key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, encryption))
        return files

    def _signed(
        self, name: str, key: rsa.RSAPrivateKey, by: str, *, authority: bool, days: tuple[int, int]
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, by)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=days[0]))
            .not_valid_after(now + datetime.timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
