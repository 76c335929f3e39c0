"""Reads certificates and keys from PEM files for OpenSSL. Errors name the key and the file."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID
from OpenSSL import SSL, crypto
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IOpenSSLServerConnectionCreator,
    IReactorTime,
)
from twisted.internet.protocol import ServerFactory
from twisted.internet.ssl import (
    Certificate,
    CertificateOptions,
    KeyPair,
    PrivateCertificate,
    optionsForClientTLS,
    platformTrust,
    trustRootFromCertificates,
)
from twisted.protocols.tls import TLSMemoryBIOProtocol
from zope.interface import implementer

from twisted_mq.config.errors import ConfigError
from twisted_mq.config.tls_options import ClientAuth, TlsOptions
from twisted_mq.encryption.connection import EncryptedFactory
from twisted_mq.encryption.settings import ClientSettings

TEST_DAYS = 365

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@attrs.frozen
class PemFile:
    """The source of a part of a certificate: the setting and its file."""

    key: str
    path: str

    def wrong(self, reason: str) -> ConfigError:
        """Return an error that names both."""
        return ConfigError(reason, key=self.key, value=self.path)

    def read(self) -> bytes:
        """Return the file's content. Raises ConfigError."""
        try:
            with open(self.path, "rb") as file:
                return file.read(1 << 20)
        except OSError as error:
            raise self.wrong(error.strerror or "cannot be read") from None


@attrs.frozen
class Identity:
    """A certificate with those that sign it, and its key."""

    certificates: list[x509.Certificate]
    key: PrivateKey


def read_certificates(place: PemFile, now: float) -> list[x509.Certificate]:
    """Return all certificates of a file; `now` is in seconds since 1970. Raises ConfigError, also for one that is not
    valid now.
    """
    try:
        found = x509.load_pem_x509_certificates(place.read())
    except ValueError:
        raise place.wrong("no certificate in PEM format") from None
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    for one in found:
        if one.not_valid_after_utc < moment:
            raise place.wrong(f"the certificate expired at {one.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC")
        if one.not_valid_before_utc > moment:
            raise place.wrong(f"the certificate is not valid before {one.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC")
    return found


def read_key(place: PemFile, password: str | None) -> PrivateKey:
    """Return a private key. Raises ConfigError."""
    try:
        key = serialization.load_pem_private_key(place.read(), None if password is None else password.encode())
    except TypeError:
        encrypted = "not encrypted" if password else "encrypted"
        raise place.wrong(f"the key is {encrypted}; check the setting of its password") from None
    except ValueError:
        raise place.wrong("no private key in PEM format, or a wrong password") from None
    if not isinstance(key, PrivateKey):
        raise place.wrong("not an RSA, EC or Ed25519 key")
    return key


def read_identity(certificate: PemFile, key: PemFile, password: str | None, now: float) -> Identity:
    """Return certificate and key, which belong together. Raises ConfigError."""
    identity = Identity(read_certificates(certificate, now), read_key(key, password))
    if identity.certificates[0].public_key() != identity.key.public_key():
        raise key.wrong(f"this is not the key of the certificate in {certificate.path}")
    return identity


def made_identity(now: float) -> Identity:
    """Return a self-signed certificate, for tls.test.mode.enable."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - datetime.timedelta(days=1))
        .not_valid_after(moment + datetime.timedelta(days=TEST_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Identity([made], key)


def _trusted(path: str | None, key: str, now: float) -> Any:
    """Return the trusted signers, from a file or else the machine's: an IOpenSSLTrustRoot of Twisted's."""
    if path is None:
        return platformTrust()
    return trustRootFromCertificates([_twisted(one) for one in read_certificates(PemFile(key, path), now)])


def server_context(settings: TlsOptions, now: float) -> SSL.Context:
    """Return the context of a server. Raises ConfigError."""
    identity = _server_identity(settings, now)
    auth = settings.tls_server_need_client_auth
    if settings.tls_test_mode_enable or auth is ClientAuth.NONE:
        return _options(identity).getContext()
    required = auth is ClientAuth.REQUIRE
    if settings.tls_server_auth_client:
        trusted = _trusted(settings.tls_server_trust_cert_path, "tls.server.trustCertPath", now)
        context = _options(identity, trustRoot=trusted).getContext()
        if not required:
            context.set_verify(SSL.VERIFY_PEER, lambda connection, certificate, code, depth, good: bool(good))
        return context
    context = _options(identity).getContext()
    context.set_verify(SSL.VERIFY_PEER | (SSL.VERIFY_FAIL_IF_NO_PEER_CERT if required else 0), _any_certificate)
    return context


def offer(context: SSL.Context, protocols: Sequence[bytes]) -> None:
    """Choose the first of these protocols that a client asks for by ALPN; a client that asks for others gets none."""

    def choose(connection: SSL.Connection, asked: list[bytes]) -> Any:
        return next((one for one in protocols if one in asked), SSL.NO_OVERLAPPING_PROTOCOLS)

    context.set_alpn_select_callback(choose)


def _server_identity(settings: TlsOptions, now: float) -> Identity:
    if settings.tls_test_mode_enable:
        return made_identity(now)
    certificate, key = settings.tls_server_cert_path, settings.tls_server_key_path
    for name, path in (("tls.server.certPath", certificate), ("tls.server.keyPath", key)):
        if path is None:
            mode = settings.tls_server_mode
            raise ConfigError(f"is required with tls.server.mode={mode}", key=name, value="")
    places = PemFile("tls.server.certPath", certificate or ""), PemFile("tls.server.keyPath", key or "")
    return read_identity(*places, settings.tls_server_key_password, now)


def _any_certificate(connection: SSL.Connection, certificate: crypto.X509, code: int, depth: int, good: int) -> bool:
    """Accept every certificate, if certificates are wanted but no signer is named (Apache: InsecureTrustManagerFactory)."""
    return True


def _options(identity: Identity | None, **more: Any) -> CertificateOptions:
    if identity is None:
        return CertificateOptions(**more)
    own, *chain = [crypto.X509.from_cryptography(one) for one in identity.certificates]
    key = crypto.PKey.from_cryptography_key(identity.key)
    return CertificateOptions(privateKey=key, certificate=own, extraCertChain=chain, **more)


def _twisted(certificate: x509.Certificate) -> Certificate:
    return Certificate(crypto.X509.from_cryptography(certificate))


@implementer(IOpenSSLClientConnectionCreator)
@attrs.frozen(eq=False)
class _AnyHost:
    """Makes connections whose server may show a certificate for any host."""

    context: SSL.Context

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        return SSL.Connection(self.context, None)


def client_creators(settings: ClientSettings, now: float) -> Callable[[str], IOpenSSLClientConnectionCreator]:
    """Return host -> what starts an encrypted connection to it. Raises ConfigError."""
    cert_name, key_name, trust_name = settings.names
    identity = None
    if settings.cert_path is not None:
        if settings.key_path is None:
            raise ConfigError(f"is required with {cert_name}", key=key_name, value="")
        places = PemFile(cert_name, settings.cert_path), PemFile(key_name, settings.key_path)
        identity = read_identity(*places, settings.key_password, now)
    if not settings.auth_server:
        return lambda host: _AnyHost(_options(identity).getContext())
    trusted = _trusted(settings.trust_cert_path, trust_name, now)
    if not settings.check_host:
        context = _options(identity, trustRoot=trusted).getContext()
        return lambda host: _AnyHost(context)
    own = None if identity is None else _private(identity)
    return lambda host: optionsForClientTLS(host, trustRoot=trusted, clientCertificate=own)


def _private(identity: Identity) -> PrivateCertificate:
    key = KeyPair(crypto.PKey.from_cryptography_key(identity.key))
    made: PrivateCertificate = PrivateCertificate.fromCertificateAndKeyPair(_twisted(identity.certificates[0]), key)
    return made


def encrypted_from_the_start(
    factory: ServerFactory[Any],
    certificate: PemFile,
    key: PemFile,
    password: str | None,
    now: float,
    clock: IReactorTime,
) -> ServerFactory[Any]:
    """Return the same factory with connections encrypted from their first byte. Raises ConfigError."""
    identity = read_identity(certificate, key, password, now)
    return cast(ServerFactory[Any], EncryptedFactory(_options(identity), False, factory, clock=clock))


def put_below(
    connection: Any, creator: IOpenSSLServerConnectionCreator, clock: IReactorTime | None
) -> TLSMemoryBIOProtocol:
    """Start TLS below a protocol on a TCP transport, as its server; everything that the transport reads goes through it
    from now on.

    `connection` has the transport and is the transport's protocol and
    its producer, which no interface expresses.
    """
    transport = connection.transport
    producer, streaming = transport.producer, transport.streamingProducer
    if producer is not None:
        transport.unregisterProducer()
    factory = EncryptedFactory(creator, False, None, clock=clock)  # type: ignore[arg-type]  # made for what there is
    tls = factory.protocol(factory, connection, False)
    transport.protocol, connection.transport = tls, tls
    tls.makeConnection(transport)
    if producer is not None:
        tls.registerProducer(producer, streaming)
    return tls
