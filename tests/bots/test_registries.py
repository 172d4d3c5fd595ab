"""Test that a fetch gets the registries of the user's settings, and none of the passwords."""

import tomllib
from pathlib import Path

import pytest

from referee.bots.registries import read_registries
from referee.sandbox.gateway import Address

SECRET = "s3cret"  # noqa: S105 - a word that must not appear


@pytest.fixture
def home(tmp_path):
    files = {
        ".config/pip/pip.conf": f"[global]\nindex-url = https://ann:{SECRET}@pip.example/simple\ntrusted-host = x\n",
        ".npmrc": f"registry=https://npm.example:4873/\n@team:registry = https://ann:{SECRET}@team.example/\n"
        f"//npm.example/:_authToken={SECRET}\nscript-shell=/bin/evil\n",
        ".config/go/env": f"GOPROXY=https://ann:{SECRET}@go.example,direct\nGOFLAGS=-toolexec=x\n",
        ".cargo/config.toml": '[source.crates-io]\nreplace-with = "mine"\n[source.mine]\n'
        f'registry = "sparse+https://ann:{SECRET}@cargo.example/index/"\n[registry]\ntoken = "{SECRET}"\n'
        '[build]\nrustc-wrapper = "x"\n',
        ".cargo/credentials.toml": f'[registry]\ntoken = "{SECRET}"\n',
        ".m2/settings.xml": "<settings xmlns='http://maven.apache.org/SETTINGS/1.2.0'><servers><server><id>m</id>"
        f"<password>{SECRET}</password></server></servers><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf>"
        f"<url>http://ann:{SECRET}@maven.example:8081/m</url></mirror></mirrors></settings>",
    }
    for name, content in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return tmp_path


def test_registries_of_the_users_settings_may_be_reached(home):
    found = read_registries(home=home, environment={})
    assert found.addresses >= {
        Address("pip.example", 443),
        Address("npm.example", 4873),
        Address("team.example", 443),
        Address("go.example", 443),
        Address("cargo.example", 443),
        Address("maven.example", 8081),
        Address("pypi.org", 443),
    }


def test_settings_have_no_password_and_no_program(home):
    found = read_registries(3128, home=home, environment={})
    text = "\n".join([*found.variables.values(), *found.files.values()])
    assert SECRET not in text
    assert not [word for word in ("evil", "toolexec", "rustc-wrapper", "token") if word in text]
    assert found.variables["PIP_INDEX_URL"] == "https://pip.example/simple"
    assert "@team:registry=https://team.example/" in found.files[".npmrc"]
    cargo = tomllib.loads(found.files[".cargo/config.toml"])["source"]
    assert cargo["mine"] == {"registry": "sparse+https://cargo.example/index/"}
    assert "<url>http://maven.example:8081/m</url>" in found.files[".m2/settings.xml"]
    assert "<port>3128</port>" in found.files[".m2/settings.xml"]


def test_environment_overrides_files_and_loses_its_passwords_too(home):
    environment = {
        "PIP_INDEX_URL": f"https://ann:{SECRET}@other.example/simple",
        "GOPROXY": f"http://ann:{SECRET}@proxy.example:3000|direct",
        "npm_config_registry": "https://third.example/",
        "SSL_CERT_FILE": "/etc/ssl/mine.pem",
        "MY_PASSWORD": SECRET,
    }
    found = read_registries(home=home, environment=environment)
    assert found.variables["PIP_INDEX_URL"] == "https://other.example/simple"
    assert found.variables["GOPROXY"] == "http://proxy.example:3000"
    assert "MY_PASSWORD" not in found.variables
    assert SECRET not in str(found)
    assert Address("proxy.example", 3000) in found.addresses
    assert Address("pip.example", 443) not in found.addresses
    assert found.files[".npmrc"].endswith("registry=https://third.example/\n")
    assert Path("/etc/ssl/mine.pem") in found.certificates


def test_go_never_uses_version_control_systems(tmp_path):
    found = read_registries(home=tmp_path, environment={"GOPROXY": "direct"})
    assert found.variables["GOPROXY"] == "off"


def test_damaged_settings_are_left_out(tmp_path):
    for name in (".config/pip/pip.conf", ".cargo/config.toml", ".m2/settings.xml", ".npmrc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"\xff<[=")
    found = read_registries(home=tmp_path, environment={})
    assert found.addresses == read_registries(home=tmp_path / "empty", environment={}).addresses
