"""Errors of a certificate have its setting and file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.certificates import Authority, Files
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.tls_options import TlsMode, TlsOptions, with_tls_file
from twisted_mq.encryption.servers import server_encryption


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def files(authority: Authority) -> Files:
    return authority.issue("server")


def refusal(**settings: object) -> str:
    options = TlsOptions(**{"tls_server_mode": TlsMode.PERMISSIVE, **settings})
    with pytest.raises(ConfigError) as caught:
        server_encryption(options, time.time)
    return str(caught.value)


def test_off_nothing_is_read() -> None:
    assert server_encryption(TlsOptions(tls_server_cert_path="/nowhere"), time.time) is None


def test_a_certificate_and_its_key_are_needed(files: Files) -> None:
    assert refusal() == "tls.server.certPath=: is required with tls.server.mode=permissive"
    assert refusal(tls_server_cert_path=files.certificate) == (
        "tls.server.keyPath=: is required with tls.server.mode=permissive"
    )


def test_files_that_say_nothing(files: Files, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("-----BEGIN CERTIFICATE-----\nplanted\n-----END CERTIFICATE-----\n")
    missing = tmp_path / "missing"
    for path, reason in ((garbage, "no certificate in PEM format"), (missing, "No such file or directory")):
        said = refusal(tls_server_cert_path=str(path), tls_server_key_path=files.key)
        assert said == f"tls.server.certPath={path}: {reason}"
    for path, reason in (
        (garbage, "no private key in PEM format, or a wrong password"),
        (missing, "No such file or directory"),
    ):
        said = refusal(tls_server_cert_path=files.certificate, tls_server_key_path=str(path))
        assert said == f"tls.server.keyPath={path}: {reason}"


def test_certificates_of_another_time(authority: Authority) -> None:
    for days, said in (((-9, -1), "the certificate expired at 20"), ((1, 9), "the certificate is not valid before 20")):
        files = authority.issue("timed", days)
        start = f"tls.server.certPath={files.certificate}: {said}"
        assert refusal(tls_server_cert_path=files.certificate, tls_server_key_path=files.key).startswith(start)


def test_the_key_of_another_certificate(authority: Authority, files: Files) -> None:
    other = authority.issue("other")
    assert refusal(tls_server_cert_path=files.certificate, tls_server_key_path=other.key) == (
        f"tls.server.keyPath={other.key}: this is not the key of the certificate in {files.certificate}"
    )


def test_keys_with_passwords(authority: Authority) -> None:
    files = authority.issue("locked", password="planted")
    given = {"tls_server_cert_path": files.certificate, "tls_server_key_path": files.key}
    said = f"tls.server.keyPath={files.key}: "
    assert refusal(**given) == f"{said}the key is encrypted; check the setting of its password"
    wrong = refusal(**given, tls_server_key_password="wrong")
    assert wrong == f"{said}no private key in PEM format, or a wrong password"
    options = TlsOptions(tls_server_mode=TlsMode.ENFORCING, **given, tls_server_key_password="planted")
    encryption = server_encryption(options, time.time)
    assert encryption is not None and "planted" not in repr(encryption)


def test_settings_of_apaches_file_count_before_others(tmp_path: Path, files: Files) -> None:
    path = tmp_path / "tls.properties"
    path.write_text(
        f"tls.test.mode.enable=false\ntls.server.certPath={files.certificate}\ntls.server.keyPath={files.key}\n"
    )
    options = TlsOptions(
        tls_server_mode=TlsMode.PERMISSIVE,
        tls_config_file=str(path),
        tls_test_mode_enable=True,
        tls_server_key_path="x",
    )
    read = with_tls_file(options)
    assert (read.tls_test_mode_enable, read.tls_server_mode) == (False, TlsMode.PERMISSIVE)
    assert (read.tls_server_cert_path, read.tls_server_key_path) == (files.certificate, files.key)
    path.write_text("tls.server.mode=perhaps\n")
    assert refusal(tls_config_file=str(path)) == (
        f"{path} line 1: tls.server.mode=perhaps: must be one of disabled, permissive, enforcing"
    )
