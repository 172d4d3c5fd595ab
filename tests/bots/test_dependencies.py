"""Test that a fetch takes packages from registries only, and that a refusal names the file and the entry."""

import json
import time

import pytest

from referee.bots.dependencies import CHECKS
from referee.errors import UserError

HOSTS = {"registry.example", "repo.example"}


def check(file, content):
    data = content if isinstance(content, bytes) else content.encode()
    return CHECKS[file](file, data, HOSTS)


@pytest.mark.parametrize(
    "line",
    [
        "numpy",
        "numpy==2.1.0",
        "grpcio>=1.70,<2  # the transport",
        "uvloop[dev] ~= 0.20 ; sys_platform != 'win32'",
        "six==1.16.0 --hash=sha256:ab12 \\\n    --hash=sha256:cd34",
        "--require-hashes",
    ],
)
def test_requirements_from_an_index_are_kept(line):
    assert check("requirements.txt", line)


def test_pip_reads_only_what_was_checked():
    assert check("requirements.txt", "# -*- coding: utf-7 -*-\n\nnumpy  # -e .\n") == b"numpy\n"


@pytest.mark.parametrize(
    "text",
    [
        "# pinned, see notes\\\nnumpy==1.26\nscipy\n",
        "num\\\npy\nscipy\\\r\n>=1\n",
        "numpy==1.26 \\\n# pinned \\\nscipy\n",
        "numpy  # pinned\\\nscipy\n",
        "numpy\\\n\\\nscipy\n",
        "\\numpy\\\\\nscipy\\",
        "\\\n",
    ],
)
def test_lines_are_joined_as_by_pip(text):
    preprocess = pytest.importorskip("pip._internal.req.req_file").preprocess
    expected = "".join(f"{line}\n" for _, line in preprocess(text))
    assert check("requirements.txt", text).decode() == expected


def test_comment_that_ends_with_a_backslash_hides_no_package():
    text = "# pinned, see notes\\\nnumpy==1.26\nscipy\n"
    assert check("requirements.txt", text) == b"numpy==1.26\nscipy\n"


@pytest.mark.parametrize(
    "line",
    [
        ".",
        "./lib",
        "../lib",
        "lib/",
        "/etc",
        "git+https://evil.example/x.git",
        "x @ https://evil.example/x.whl",
        "x@git+https://evil.example/x",
        "https://evil.example/x.whl",
        "file:///etc/passwd",
        "numpy==1.0 --config-settings=a=b",
        "num\\\npy @ file:///x",
        "${HOME}",
    ],
)
def test_requirement_from_elsewhere_is_refused(line):
    with pytest.raises(UserError, match=r"^requirements.txt: .*only packages of a registry"):
        check("requirements.txt", f"numpy\n{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "-e .",
        "--editable=.",
        "-r more.txt",
        "-c pins.txt",
        "--index-url https://evil.example/simple",
        "--extra-index-url=https://evil.example/simple",
        "-i https://evil.example",
        "-f https://evil.example",
        "--find-links .",
        "--no-binary=:all:",
        "--trusted-host evil.example",
        "--only-binary :all:",
    ],
)
def test_option_of_pip_is_refused(line):
    with pytest.raises(UserError) as caught:
        check("requirements.txt", f"numpy\n{line}\n")
    assert str(caught.value) == (
        f"requirements.txt: {line}: options are not allowed, except --hash, --pre, --prefer-binary and --require-hashes;"
        " remove the line, or set build.fetch in bot.toml (proto/README.md, section 3)"
    )


def test_packages_of_npm_from_the_registry_are_kept():
    package = {
        "scripts": {"preinstall": "rm -rf ~"},
        "dependencies": {"a": "^1.2", "@s/b": "latest", "c": "npm:@t/d@>=1 <3"},
    }
    lock = {
        "packages": {
            "": {"dependencies": {"a": "^1.2"}},
            "node_modules/a": {
                "version": "1.2.3",
                "resolved": "https://registry.npmjs.org/a.tgz",
                "hasInstallScript": True,
            },
            "node_modules/b": {"version": "1.0.0", "resolved": "https://registry.example/b.tgz"},
        }
    }
    assert check("package.json", json.dumps(package))
    assert check("package-lock.json", json.dumps(lock))


@pytest.mark.parametrize(
    "wanted",
    [
        "git+ssh://git@evil.example/x",
        "github:a/b",
        "a/b",
        "file:../x",
        "./x",
        "../x",
        "link:x",
        "workspace:*",
        "https://evil.example/x.tgz",
        7,
    ],
)
def test_package_of_npm_from_elsewhere_is_refused(wanted):
    for section in ("dependencies", "devDependencies", "optionalDependencies"):
        with pytest.raises(UserError, match=rf"^package.json: {section}.x"):
            check("package.json", json.dumps({section: {"x": wanted}}))


@pytest.mark.parametrize(
    "lock",
    [
        {"packages": {"node_modules/x": {"resolved": "lib/x", "link": True}}},
        {"packages": {"node_modules/x": {"resolved": "git+ssh://git@evil.example/x"}}},
        {"packages": {"node_modules/x": {"resolved": "https://evil.example/x.tgz"}}},
        {"packages": {"node_modules/x": {"resolved": "file:x.tgz"}}},
        {"packages": {"node_modules/x": {"resolved": ["file:x.tgz"]}}},
        {"dependencies": {"a": {"version": "1", "dependencies": {"x": {"version": "file:x"}}}}},
    ],
)
def test_locked_package_from_elsewhere_is_refused(lock):
    with pytest.raises(UserError, match=r"^package-lock.json: (node_modules/)?x: "):
        check("package-lock.json", json.dumps(lock))


def test_workspaces_of_npm_are_refused():
    with pytest.raises(UserError, match=r"^package.json: workspaces: "):
        check("package.json", '{"workspaces": ["lib"]}')


@pytest.mark.parametrize(
    ("content", "entry"),
    [
        ('[dependencies]\nx = { path = "../../x" }', "dependencies.x.path"),
        ('[dependencies.x]\ngit = "https://evil.example/x"', "dependencies.x.git"),
        ('[dependencies]\nx = { git = "https://e", path = "x" }', "dependencies.x.git"),
        ('[dependencies]\nx = { path = "x", git = "https://e" }', "dependencies.x.path"),
        ('[build-dependencies]\nx = { path = "x" }', "build-dependencies.x.path"),
        (
            "[target.'cfg(unix)'.dependencies]\nx = { git = 'https://e' }",
            "target.cfg(unix).dependencies.x.git",
        ),
        ('[patch.crates-io]\nx = { path = "x" }', "patch.crates-io.x.path"),
        ('[workspace.dependencies]\nx = { path = "x" }', "workspace.dependencies.x.path"),
        ('[workspace]\nmembers = ["a"]', "workspace.members"),
        ('[dev_dependencies]\nx = { path = "../x" }', "dev_dependencies.x.path"),
        ('[build_dependencies]\nx = { git = "https://e" }', "build_dependencies.x.git"),
        (
            "[target.'cfg(unix)'.dev_dependencies]\nx = { path = '../x' }",
            "target.cfg(unix).dev_dependencies.x.path",
        ),
        ('[package]\nname = "bot"\nworkspace = ".."', "package.workspace"),
        ('[project]\nname = "bot"\nworkspace = ".."', "project.workspace"),
    ],
)
def test_crate_from_elsewhere_is_refused(content, entry):
    with pytest.raises(UserError) as caught:
        check("Cargo.toml", content)
    assert str(caught.value).startswith(f"Cargo.toml: {entry}: ")


def test_crates_of_a_registry_are_kept():
    text = '[package]\nname = "bot"\nbuild = "build.rs"\n[dependencies]\nx = "1"\ny = { version = "2" }'
    assert check("Cargo.toml", text) == text.encode()
    lock = (
        '[[package]]\nname = "x"\nsource = "registry+https://github.com/rust-lang/crates.io-index"'
    )
    assert check("Cargo.lock", lock)
    with pytest.raises(UserError, match=r"^Cargo.lock: x: git\+https://e"):
        check("Cargo.lock", '[[package]]\nname = "x"\nsource = "git+https://e"')


@pytest.mark.parametrize(
    "line",
    [
        "replace a.example/x => ../..",
        "replace\ta.example/x => ../..",
        "replace a.example/x v1.0.0 => ./x",
        "replace (\n\ta.example/x => ../x // comment\n)",
        'replace a.example/x => "/etc"',
    ],
)
def test_module_of_go_from_a_folder_is_refused(line):
    with pytest.raises(UserError, match=r"^go.mod: replace a.example/x"):
        check("go.mod", f"module bot\n\n{line}\n")


def test_other_lines_of_go_mod_are_kept():
    text = "module bot\ngo 1.99\ntoolchain go1.99.1\nreplace a.b/x => c.d/y v1.2.3\nrequire e.f/g v1.0.0 // indirect\n"
    assert check("go.mod", text) == text.encode()


POM = "<project xmlns='http://maven.apache.org/POM/4.0.0'>{}</project>"


@pytest.mark.parametrize(
    ("inner", "entry"),
    [
        (
            "<build><extensions><extension><groupId>x</groupId></extension></extensions></build>",
            "build.extensions.extension",
        ),
        (
            "<build><plugins><plugin><extensions> true </extensions></plugin></plugins></build>",
            "build.plugins.plugin.extensions",
        ),
        ("<modules><module>lib</module></modules>", "modules.module: lib"),
        (
            "<profiles><profile><modules><module>lib</module></modules></profile></profiles>",
            "profiles.profile.modules.module: lib",
        ),
        (
            "<dependencies><dependency><systemPath>/x.jar</systemPath></dependency></dependencies>",
            "dependencies.dependency.systemPath: /x.jar",
        ),
        (
            "<repositories><repository><url>https://evil.example</url></repository></repositories>",
            "repositories.repository.url: https://evil.example",
        ),
        (
            "<pluginRepositories><pluginRepository><url>file:///x</url></pluginRepository></pluginRepositories>",
            "pluginRepositories.pluginRepository.url: file:///x",
        ),
    ],
)
def test_pom_with_extensions_or_other_sources_is_refused(inner, entry):
    with pytest.raises(UserError) as caught:
        check("pom.xml", POM.format(inner))
    message = str(caught.value)
    assert message.startswith(f"pom.xml: {entry}: ")
    assert ("remove the entry" if "extensions" in entry else "copy other sources") in message


def test_pom_with_a_document_type_is_refused_in_every_encoding():
    bomb = '<?xml version="1.0" encoding="{}"?><!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'
    for encoding in ("UTF-8", "UTF-16"):
        with pytest.raises(UserError, match=r"^pom.xml: a document type"):
            check("pom.xml", bomb.format(encoding).encode(encoding))


@pytest.mark.parametrize("encoding", ["xyz", "gbk", "hex", "idna", "punycode", "a" * 9999])
def test_pom_with_an_encoding_that_cannot_be_read_is_refused(encoding):
    with pytest.raises(UserError, match=r"^pom.xml: not valid XML: ") as caught:
        check("pom.xml", f'<?xml version="1.0" encoding="{encoding}"?><project/>')
    assert len(str(caught.value)) < 300


def test_ordinary_pom_is_kept():
    inner = (
        "<repositories><repository><url>https://repo.example/x</url></repository></repositories>"
    )
    assert check("pom.xml", POM.format(inner + "<url>https://bot.example</url>"))


def test_module_in_the_configuration_of_a_plugin_is_kept():
    inner = (
        "<build><plugins><plugin><configuration><checkstyleRules><module name='Checker'/>"
        "</checkstyleRules><modules><module>TreeWalker</module></modules></configuration></plugin></plugins></build>"
    )
    assert check("pom.xml", POM.format(inner))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("package.json", "{"),
        ("package-lock.json", b"\xff\xfe"),
        ("Cargo.toml", "="),
        ("pom.xml", "<a>"),
    ],
)
def test_damaged_file_is_named(file, content):
    with pytest.raises(UserError, match=f"^{file}: not "):
        check(file, content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<a>" * 500_000, "nested more than 100 deep"),
        ("<a>" + "<b/>" * 300_000 + "</a>", "more than 100,000 elements"),
    ],
)
def test_pom_with_too_many_elements_is_refused(content, reason):
    with pytest.raises(UserError, match=rf"^pom.xml: .*{reason}"):
        check("pom.xml", content)


def test_pom_may_be_nested_100_deep():
    assert check("pom.xml", "<a>" * 100 + "</a>" * 100)


def deep_package():
    """Return a file with a long path to many dependencies, of which the last one is refused."""
    inner = dict.fromkeys(range(80_000), "1") | {"x": "/"}
    for _ in range(400):
        inner = {"k" * 2_500: inner}
    return json.dumps({"dependencies": inner})


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("requirements.txt", "a" + " " * (1 << 20) + "/"),
        ("requirements.txt", ("a" + " " * 900 + "==1\n") * 1_000 + "/"),
        ("requirements.txt", "a \\\n" * 200_000),
        ("requirements.txt", ("a==" + "1;" * 400 + "/\n") * 1_000),
        ("requirements.txt", "a" + " " * (1 << 19) + "==1" + " " * (1 << 19) + "/"),
        ("Cargo.toml", "a." * 50_000 + "a = 1"),
        ("Cargo.lock", f"[{'a.' * 50_000}a]"),
        ("package.json", deep_package()),
    ],
)
def test_hostile_file_is_refused_at_once(file, content):
    began_s = time.process_time()  # the machine may be busy
    with pytest.raises(UserError, match=f"^{file}: ") as caught:
        check(file, content)
    assert time.process_time() - began_s < 2
    assert len(str(caught.value)) < 500


def test_requirement_may_have_many_hashes_but_not_a_long_name():
    hashes = " \\\n    --hash=sha256:" + "0" * 64
    assert check("requirements.txt", "numpy==2.1.0" + hashes * 100)
    with pytest.raises(UserError, match=r"^requirements.txt: aaa.*: more than 1,000 characters"):
        check("requirements.txt", "a" * 1_001)


def test_name_and_source_of_a_locked_crate_may_be_no_text():
    assert check("Cargo.lock", f"[[package]]\nname = 1\nsource = 0x{'f' * 10_000}")
