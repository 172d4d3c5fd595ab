"""Test that a fetch gets the registries of the user's settings, and none of the passwords."""

import tomllib
from pathlib import Path

import pytest

from referee.bots import registries
from referee.bots.fetch import fetch_environment
from referee.bots.registries import bare_url, read_registries
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


def test_certificates_of_npm_are_those_with_an_absolute_path(tmp_path, monkeypatch):
    monkeypatch.setattr(registries, "_PIP_FILES", ())  # pip's settings may name certificates too
    text = 'cafile = "/etc/ssl/npm.pem"\ncafile=mine.pem\ncafile=""\n@cafile:registry=https://npm.example/\n'
    (tmp_path / ".npmrc").write_text(text)
    found = read_registries(home=tmp_path, environment={})
    assert found.certificates == (Path("/etc/ssl/npm.pem"),)
    assert "cafile=/etc/ssl/npm.pem\ncafile=mine.pem\n@cafile" in found.files[".npmrc"]


def test_go_never_uses_version_control_systems(tmp_path):
    found = read_registries(home=tmp_path, environment={"GOPROXY": "direct"})
    assert found.variables["GOPROXY"] == "off"


def test_damaged_settings_are_left_out(tmp_path):
    for name in (".config/pip/pip.conf", ".cargo/config.toml", ".m2/settings.xml", ".npmrc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"\xff<[=")
    found = read_registries(home=tmp_path, environment={})
    assert found.addresses == read_registries(home=tmp_path / "empty", environment={}).addresses


def write(home, name, content):
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


@pytest.mark.parametrize("encoding", ["GBK", "foo"])
def test_settings_in_an_unknown_encoding_are_left_out(tmp_path, encoding):
    mirror = "<mirror><url>http://m.example</url></mirror>"
    text = f'<?xml version="1.0" encoding="{encoding}"?><settings><mirrors>{mirror}</mirrors></settings>'
    write(tmp_path, ".m2/settings.xml", text)
    assert (
        "m.example" not in read_registries(home=tmp_path, environment={}).files[".m2/settings.xml"]
    )


def test_pip_takes_the_settings_that_pip_would_take(tmp_path):
    """As in pip, the newer file of a user overrides the older one, and `install` overrides `global`."""
    write(tmp_path, ".pip/pip.conf", "[global]\nindex-url = https://old.example/simple\n")
    write(tmp_path, ".config/pip/pip.conf", "[global]\nindex_url = https://new.example/simple\n")
    found = read_registries(home=tmp_path, environment={})
    assert found.variables["PIP_INDEX_URL"] == "https://new.example/simple"
    write(tmp_path, ".pip/pip.conf", "[install]\nindex-url = https://install.example/simple\n")
    found = read_registries(home=tmp_path, environment={})
    assert found.variables["PIP_INDEX_URL"] == "https://install.example/simple"
    write(tmp_path, ".pip/pip.conf", "[install]\nindex-url =\n")
    found = read_registries(home=tmp_path, environment={"PIP_INDEX_URL": ""})
    assert found.variables["PIP_INDEX_URL"] == "https://new.example/simple"


def test_file_that_the_user_names_for_pip_replaces_the_files_in_the_home_folder(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(registries, "_PIP_FILES", ())
    write(tmp_path, ".config/pip/pip.conf", "[global]\nextra-index-url = https://home.example\n")
    write(tmp_path, "mine.conf", "[global]\nindex-url = https://named.example/simple\n")
    for name, urls in (
        ("mine.conf", {"PIP_INDEX_URL": "https://named.example/simple"}),
        ("missing.conf", {"PIP_EXTRA_INDEX_URL": "https://home.example"}),
    ):
        environment = {"PIP_CONFIG_FILE": str(tmp_path / name)}
        found = read_registries(home=tmp_path, environment=environment).variables
        assert {key: value for key, value in found.items() if "PIP" in key} == urls


A = {"registry": "https://a.example"}
B = {"index": "sparse+https://b.example/"}
IO = "crates-io"


def tables(**named):
    """Return the text of Cargo's settings; `io` stands for crates-io."""
    return "".join(
        f"[{table}.{name.replace('io', IO)}]\n" + "".join(f'{k} = "{v}"\n' for k, v in each.items())
        for table, content in named.items()
        for name, each in content.items()
    )


@pytest.mark.parametrize(
    ("sources", "shown"),
    [
        ({"io": {"replace-with": "a"}, "a": {"registry": "git://a.example"}}, {}),
        ({"io": {"replace-with": "a"}, "a": {"replace-with": "nobody"}}, {}),
        ({"io": {"replace-with": "a"}, "a": A}, {IO: {"replace-with": "a"}, "a": A}),
        ({"io": {"replace-with": "b"}}, {IO: {"replace-with": "b"}}),
        ({"b": {"directory": "/v"}}, {}),
        (
            {"io": {"replace-with": "a"}, "a": {"directory": "/v", "replace-with": "b"}},
            {IO: {"replace-with": "b"}},
        ),
        ({"a": A | {"replace-with": "nobody"}}, {"a": A}),
        ({"a": A | {"replace-with": IO}}, {"a": A | {"replace-with": IO}}),
        ({"a": {"replace-with": "a"}}, {}),
        ({"io": {"replace-with": "c"}, "c": {"replace-with": "d"}, "d": {"replace-with": "c"}}, {}),
    ],
)
def test_cargo_gets_only_sources_with_an_address(tmp_path, sources, shown):
    """Cargo refuses a file with a source that has no address, except for crates-io."""
    write(tmp_path, ".cargo/config.toml", tables(source=sources, registries={"b": B}))
    found = read_registries(home=tmp_path, environment={})
    settings = tomllib.loads(found.files[".cargo/config.toml"])
    assert settings.get("source", {}) == shown
    assert settings["registries"] == {"b": B}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"HTTPS://ann:{SECRET}@H.example/x", "https://h.example/x"),
        (f"Sparse+HTTPS://{SECRET}@h.example:81/", "sparse+https://h.example:81/"),
        (f"https://h.example/x?token={SECRET}#{SECRET}", "https://h.example/x"),
        (f"http://ann:{SECRET}@[2001:db8::1]:81/x", "http://[2001:db8::1]:81/x"),
        (f"//ann:{SECRET}@h.example/", None),
        (f"git+https://ann:{SECRET}@h.example/", None),
        (f"ssh://ann:{SECRET}@h.example/", None),
        (f"ann:{SECRET}@h.example:3128", None),
        (f"https://ann/{SECRET}@h.example/", None),
        (f"https://ann:{SECRET}/x@h.example/", None),
        (f"https://h.example/ {SECRET}", None),
        ("https://", None),
        ("/etc/passwd", None),
    ],
)
def test_url_keeps_only_scheme_host_port_and_path(text, shown):
    assert bare_url(text) == shown


HIDDEN = [
    f"HTTPS://ann:{SECRET}@{{}}.example/",
    f"//ann:{SECRET}@{{}}.example/",
    f"git+https://ann:{SECRET}@{{}}.example/",
    f"ssh://ann:{SECRET}@{{}}.example/",
    f"https://{{}}.example/?token={SECRET}",
]


@pytest.mark.parametrize("form", HIDDEN)
def test_no_form_of_a_setting_shows_a_password(tmp_path, form):
    files = {
        ".config/pip/pip.conf": f"[global]\nindex-url = {form.format('pip')}\n",
        ".npmrc": f'registry={form.format("npm")}\n@a:registry="{form.format("quoted")}"\n',
        ".cargo/config.toml": f"[source.mine]\nregistry = '{form.format('source')}'\n"
        f"[source.crates-io]\nreplace-with = '{form.format('with')}'\n"
        f"[source.'{form.format('name')}']\nreplace-with = 'mine'\n"
        f"[registries.more]\nindex = '{form.format('index')}'\n",
        ".m2/settings.xml": f"<settings><mirrors><mirror><id>{form.format('id')}</id><mirrorOf>external:*</mirrorOf>"
        f"<url>{form.format('maven')}</url></mirror></mirrors></settings>",
    }
    for name, content in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    environment = {
        "GOPROXY": form.format("go"),
        "GOSUMDB": f"sums.example+1a2b+Ab/c= {form.format('sums')}",
        "GONOSUMDB": form.format("none"),
        "npm_config_registry": form.format("npm2"),
    }
    found = read_registries(home=tmp_path, environment=environment)
    assert SECRET not in str(found)
    hosts = {address.host.removesuffix(".example") for address in found.addresses}
    allowed = {"pip", "npm", "npm2", "quoted", "source", "index", "maven", "go", "sums"}
    assert hosts & {*allowed, "with", "name", "id", "none"} == (
        allowed if form.lower().startswith("https:") else set()
    )
    assert ("<mirrorOf>external:*</mirrorOf>" in str(found.files)) == ("maven" in hosts)
    tomllib.loads(found.files[".cargo/config.toml"])


@pytest.mark.parametrize(
    ("setting", "shown", "host"),
    [
        (
            f"a.example+1a+b= https://ann:{SECRET}@b.example/x",
            "a.example+1a+b= https://b.example/x",
            "b.example",
        ),
        ("a.example+1a+b=", "a.example+1a+b=", "a.example"),
        ("off", "off", "pypi.org"),
        (f"{SECRET}@a.example", None, "pypi.org"),
    ],
)
def test_checksum_database_of_go_may_be_reached(tmp_path, setting, shown, host):
    found = read_registries(home=tmp_path, environment={"GOSUMDB": setting})
    assert found.variables.get("GOSUMDB") == shown
    assert Address(host, 443) in found.addresses


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("https://direct.example/direct,direct", "https://direct.example/direct"),
        ("direct|https://a.example", "https://a.example"),
        (
            "https://a.example|https://b.example/x-direct , off",
            "https://a.example|https://b.example/x-direct,off",
        ),
        (f"ssh://{SECRET}@a.example,direct", "off"),
    ],
)
def test_only_the_whole_word_direct_is_left_out(tmp_path, setting, shown):
    assert (
        read_registries(home=tmp_path, environment={"GOPROXY": setting}).variables["GOPROXY"]
        == shown
    )


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        (f"ann:{SECRET}@proxy.example:3128", "http://proxy.example:3128"),
        (f"HTTP://ann:{SECRET}@proxy.example:3128", "http://proxy.example:3128"),
        (f"socks5://ann:{SECRET}@proxy.example", None),
    ],
)
def test_fetch_without_a_sandbox_gets_the_proxy_without_its_password(
    tmp_path, monkeypatch, setting, shown
):
    monkeypatch.setenv("https_proxy", setting)
    registries = read_registries(home=tmp_path, environment={})
    environment = fetch_environment(tmp_path, registries, sandboxed=False)
    assert environment.get("https_proxy") == shown
    assert SECRET not in str(environment)
