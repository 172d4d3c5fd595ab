import errno
import itertools
import os
import shutil
import socket
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from referee.bots import ignore_files, snapshot
from referee.bots.ignore_files import IgnoreFiles
from referee.errors import Shortage, UserError


@pytest.fixture
def bot(tmp_path):
    folder = tmp_path / "bot"
    (folder / "src").mkdir(parents=True)
    (folder / "bot.toml").write_text('name = "x"\n')
    (folder / "src" / "main.c").write_text("int main() {}\n")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    return folder


def names(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_snapshot_has_all_files_links_and_executable_flags(bot, tmp_path):
    (bot / "link").symlink_to("src/main.c")
    copy = snapshot.take(bot, tmp_path / "copy", built=False)
    assert names(copy.path) == {"bot.toml", "run", "src", "src/main.c", "link"}
    assert (copy.path / "src/main.c").read_text() == "int main() {}\n"
    assert os.access(copy.path / "run", os.X_OK)
    assert not os.access(copy.path / "bot.toml", os.X_OK)
    assert (copy.path / "link").readlink() == Path("src/main.c")
    assert (copy.entries, copy.size) == (5, 11 + 14 + 10)


def test_hash_depends_on_neither_time_nor_place_nor_other_permissions(bot, tmp_path):
    first = snapshot.take(bot, tmp_path / "a", built=False)
    os.utime(bot / "run", (1, 1))
    (bot / "run").chmod(0o700)
    second = snapshot.take(bot, tmp_path / "b", built=True)
    assert first.content_hash == second.content_hash
    assert snapshot.take(first.path, tmp_path / "c", built=False).content_hash == first.content_hash


CHANGES = {
    "content": lambda bot: (bot / "run").write_text("#!/bin/sh \n"),
    "permission": lambda bot: (bot / "run").chmod(0o644),
    "name": lambda bot: (bot / "run").rename(bot / "ran"),
    "place": lambda bot: (bot / "run").rename(bot / "src" / "run"),
    "one file more": lambda bot: (bot / "more").touch(),
    "one folder more": lambda bot: (bot / "more").mkdir(),
    "a link": lambda bot: (bot / "more").symlink_to("run"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_any_change_of_content_changes_the_hash(bot, tmp_path, change):
    before = snapshot.take(bot, tmp_path / "a", built=False)
    change(bot)
    assert snapshot.take(bot, tmp_path / "b", built=False).content_hash != before.content_hash


def test_hash_separates_content_from_the_next_name(tmp_path):
    hashes = set()
    for number, files in enumerate(({"a": "b", "c": ""}, {"a": "", "b": "c"}, {"ab": "", "c": ""})):
        folder = tmp_path / f"bot{number}"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        hashes.add(snapshot.take(folder, tmp_path / f"copy{number}", built=False).content_hash)
    assert len(hashes) == 3


def test_replaced_file_has_the_hash_of_a_folder_with_the_new_content(bot, tmp_path):
    name = next(path.name for path in sorted(bot.iterdir()) if path.is_file())
    taken = snapshot.take(bot, tmp_path / "one", built=False, replaced={name: b"new"})
    (bot / name).write_bytes(b"new")
    (bot / name).chmod(0o644)
    assert (taken.path / name).read_bytes() == b"new"
    assert taken.content_hash == snapshot.take(bot, tmp_path / "two", built=False).content_hash


def test_ignored_files_are_left_out_if_the_bot_is_built(bot, tmp_path):
    (bot / ".gitignore").write_text("/target/\n*.o\n!keep.o\n")
    (bot / "target").mkdir()
    (bot / "target" / "big").touch()
    for name in ("a.o", "keep.o", "src/b.o", "src/target"):
        (bot / name).touch()
    (bot / "src" / ".gitignore").write_text("!b.o\nsecret\n")
    (bot / "src" / "secret").touch()
    (bot / "secret").touch()
    copy = snapshot.take(bot, tmp_path / "copy", built=True)
    always = {".gitignore", "bot.toml", "run", "src", "src/main.c", "src/.gitignore"}
    assert names(copy.path) == always | {"keep.o", "src/b.o", "src/target", "secret"}


@pytest.mark.toolchain("git")
@pytest.mark.parametrize(
    "rules",
    [
        "build*/\n!build2/\n**/tmp\n/only\n*.log\n!src/a.log\n",
        "\ufeff*.log\nonly\n",
        "\r\n*.log\r\n\r\nonly\r",
        "a\x0conly\na\x85only\na\u2028only\n*.log",
        "[[]x\nbuild[[1]\n*.l[]o]g\n[a||o]nly\nsrc/[!:a]*\n",
        "src/**\n!src/a.log\nbuild1/**\n!/**/a\n",
        "src/**/\nbuild1/**/\n",
        "*\n!*/\n!a\n",
        "/**\n!src/\n!src/a.log\n",
        "a\n*.log\n!build1/\n!src/\n",
        "only  \nbuild1/** \nc\\ \nd\\  \ne\\\\ \n \t\n",
        "\udce9\n\udca0x\n",
    ],
    ids=[
        "patterns",
        "byte order mark",
        "carriage returns",
        "other line separators",
        "brackets",
        "content of a folder",
        "subfolders of a folder",
        "all but the files of a name",
        "all but a file in a folder",
        "files in folders that are kept",
        "spaces at the end",
        "bytes that are not UTF-8",
    ],
)
def test_ignore_rules_match_those_of_git(bot, tmp_path, rules):
    """Compare with the files that git lists for the same folder."""
    (bot / ".gitignore").write_bytes(os.fsencode(rules))
    for name in (
        *("build1/a", "build2/a", "src/tmp/a", "only", "src/only", "b.log", "src/a.log"),
        *("c", "c ", "d ", "e\\", "\udce9", "\udca0x"),
    ):
        (bot / name).parent.mkdir(exist_ok=True)
        (bot / name).touch()
    git = shutil.which("git")
    subprocess.run([git, "init", "-q"], cwd=bot, check=True)
    listed = subprocess.run(
        [git, "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=bot,
        check=True,
        capture_output=True,
    ).stdout.split(b"\0")[:-1]
    copy = snapshot.take(bot, tmp_path / "copy", built=True)
    files = {name for name in names(copy.path) if (copy.path / name).is_file()}
    assert files == {os.fsdecode(name) for name in listed}


def test_ignored_files_are_copied_if_nothing_is_built(bot, tmp_path):
    (bot / ".gitignore").write_text("run\n")
    (bot / ".git").mkdir()
    (bot / "__pycache__").mkdir()
    copy = snapshot.take(bot, tmp_path / "copy", built=False)
    assert names(copy.path) == {"bot.toml", "run", "src", "src/main.c", ".gitignore"}


def test_git_worktree_has_the_hash_of_a_clone(bot, tmp_path):
    (bot / ".git").mkdir()
    clone = snapshot.take(bot, tmp_path / "clone", built=False)
    (bot / ".git").rmdir()
    (bot / ".git").write_text("gitdir: /home/ann/bot/.git/worktrees/a\n")
    worktree = snapshot.take(bot, tmp_path / "worktree", built=False)
    assert worktree.content_hash == clone.content_hash
    assert ".git" not in names(worktree.path)


def refusal(bot, tmp_path):
    with pytest.raises(UserError) as caught:
        snapshot.take(bot, tmp_path / "copy", built=True)
    assert not (tmp_path / "copy").exists()
    return str(caught.value)


@pytest.mark.parametrize("destination", ["/etc/passwd", "../outside", "src/../../outside", ".."])
def test_link_out_of_the_folder_is_refused(bot, tmp_path, destination):
    (bot / "link").symlink_to(destination)
    assert refusal(bot, tmp_path) == (
        f"{bot}/link: a link that leads out of the bot's folder, to {destination}"
    )


def test_link_out_of_the_folder_through_another_link_is_refused(bot, tmp_path):
    (bot / "a" / "b").mkdir(parents=True)
    (bot / "a" / "b" / "c").symlink_to("../..")  # the bot's folder itself
    (bot / "y").symlink_to("a/b/c/../outside")
    assert "/y: a link that leads out of the bot's folder" in refusal(bot, tmp_path)


def test_target_of_a_link_is_copied_without_a_leading_dot(bot, tmp_path):
    hashes = set()
    for number, destination in enumerate(("run", "./run", ".//run")):
        (bot / "link").symlink_to(destination)
        copy = snapshot.take(bot, tmp_path / f"copy{number}", built=False)
        assert os.readlink(copy.path / "link") == "run"  # noqa: PTH115 - a path hides the dot
        hashes.add(copy.content_hash)
        (bot / "link").unlink()
    assert len(hashes) == 1


def test_circular_links_are_copied_as_links(bot, tmp_path):
    (bot / "one").symlink_to("two")
    (bot / "two").symlink_to("one")
    copy = snapshot.take(bot, tmp_path / "copy", built=True)
    assert (copy.path / "one").is_symlink()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("*a" * 4 + "b", "line 1: more than 3 wildcards in a rule"),
        ("ok\n**/*.o\n" + "*?" * 9, "line 3: more than 3 wildcards in a rule"),
        ("a\n" * 1001, "more than 64 KiB or 1000 lines"),
        ("a" * (1 << 17), "more than 64 KiB or 1000 lines"),
    ],
)
def test_gitignore_that_takes_long_to_match_is_refused(bot, tmp_path, text, says):
    (bot / ".gitignore").write_text(text)
    assert refusal(bot, tmp_path) == f"{bot}/.gitignore: {says}"


def test_rules_of_all_gitignores_together_have_a_limit_of_cpu_time(bot, tmp_path, monkeypatch):
    (bot / ".gitignore").write_text("*a\n")
    (bot / "src" / ".gitignore").write_text("*b\n")
    # Each reading of the clock is 1 s later: to read a file takes 1 s, and to test a path by the only rule of a file takes 2 s.
    monkeypatch.setattr(ignore_files.time, "thread_time", itertools.count().__next__)
    monkeypatch.setattr(ignore_files, "_MAX_RULES_S", 17.5)
    assert refusal(bot, tmp_path) == (
        f"{bot}: its .gitignore files take more than 17.5 s of CPU time; write fewer rules, or rules with fewer `*`"
    )
    monkeypatch.setattr(ignore_files, "_MAX_RULES_S", 18)
    assert snapshot.take(bot, tmp_path / "copy", built=True)


def test_test_of_a_path_ends_at_the_limit_of_cpu_time(bot, monkeypatch):
    readings = itertools.count()  # each reading of the clock is 1 s later
    monkeypatch.setattr(ignore_files.time, "thread_time", readings.__next__)
    monkeypatch.setattr(ignore_files, "_MAX_RULES_S", 20)
    files = IgnoreFiles.start(bot).add(PurePosixPath(), bot / ".gitignore", b"*a*a*b\n" * 1000)
    with pytest.raises(UserError, match="take more than 20 s of CPU time"):
        files.match(PurePosixPath("a" * 255), is_folder=False)
    assert next(readings) < 30


@pytest.mark.parametrize(
    "rule", ["*[[:digit:]].bin", "[!a[:alpha:]]", "[^[:space:]]", "[]x[:upper:]]"]
)
def test_gitignore_with_a_class_of_characters_is_refused(bot, tmp_path, rule):
    (bot / ".gitignore").write_text(f"ok\n{rule}\n")
    assert refusal(bot, tmp_path) == (
        f"{bot}/.gitignore: line 2: classes such as [:digit:] are not allowed; write a range such as 0-9"
    )


@pytest.mark.parametrize("end", ["\t", "\u00a0", " \x0c", "\\\t"])
def test_gitignore_with_a_rule_that_ends_in_other_white_space_is_refused(bot, tmp_path, end):
    (bot / ".gitignore").write_text(f"ok\nx{end}\n", encoding="utf-8", newline="")
    assert refusal(bot, tmp_path) == (
        f"{bot}/.gitignore: line 2: the rule ends in a tab or another white-space character that is not a space; remove it"
    )


def test_gitignore_may_have_a_comment_with_many_stars_and_a_class(bot, tmp_path):
    (bot / ".gitignore").write_text("# * * * * * [[:digit:]]\n")
    assert ".gitignore" in names(snapshot.take(bot, tmp_path / "copy", built=True).path)


def test_gitignore_that_is_a_link_or_a_pipe_is_not_read(bot, tmp_path):
    (bot / ".gitignore").symlink_to("/dev/zero")
    assert "a link that leads out of the bot's folder" in refusal(bot, tmp_path)
    (bot / ".gitignore").unlink()
    os.mkfifo(bot / ".gitignore")
    assert "neither a file nor a folder nor a link" in refusal(bot, tmp_path)


def test_folder_with_the_name_of_a_gitignore_has_no_effect(bot, tmp_path):
    (bot / ".gitignore").mkdir()
    (bot / ".gitignore" / "rules").write_text("*\n")
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 - numbers, not paths
    copy = snapshot.take(bot, tmp_path / "copy", built=True)
    assert {"src/main.c", ".gitignore/rules"} <= names(copy.path)
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize(
    ("rule", "says"),
    [("!", "Invalid git pattern: '!'"), ("[z-a]", "bad character range z-a")],
)
def test_invalid_gitignore_is_named_in_the_error(bot, tmp_path, rule, says):
    (bot / ".gitignore").write_text(f"ok\n{rule}\n")
    assert refusal(bot, tmp_path) == f"{bot}/.gitignore: {says}"


def test_too_deeply_nested_folders_are_refused(bot, tmp_path):
    deepest = bot
    for _ in range(150):
        deepest /= "x"
        deepest.mkdir()
    assert refusal(bot, tmp_path) == f"{bot}: folders are nested more than 100 deep"


def test_link_out_of_the_folder_from_a_subfolder_is_refused(bot, tmp_path):
    (bot / "src" / "link").symlink_to("../../x")
    assert "a link that leads out" in refusal(bot, tmp_path)


def test_link_through_a_parent_folder_that_stays_inside_is_copied(bot, tmp_path):
    (bot / "src" / "link").symlink_to("../run")
    copy = snapshot.take(bot, tmp_path / "copy", built=True)
    assert (copy.path / "src" / "link").read_text() == "#!/bin/sh\n"


def test_pipe_is_refused(bot, tmp_path):
    os.mkfifo(bot / "pipe")
    assert refusal(bot, tmp_path) == (
        f"{bot}/pipe: neither a file nor a folder nor a link; remove it"
    )


def test_socket_is_refused(bot, tmp_path, monkeypatch):
    monkeypatch.chdir(bot)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert "neither a file nor a folder" in refusal(bot, tmp_path)


def test_too_large_folder_is_refused_before_it_is_copied(bot, tmp_path):
    with (bot / "weights").open("wb") as file:
        file.truncate(5 << 30)
    assert refusal(bot, tmp_path).startswith(
        f"{bot}: more than 1024 MiB; list the files that the build creates"
    )


def test_file_that_grows_while_it_is_copied_is_refused(bot, tmp_path, monkeypatch):
    opened = os.open

    def grow(path, *args, **kwargs):
        if Path(path).name == "run":
            os.truncate(bot / "run", 3 << 20)
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", grow)
    copy = snapshot.take(bot, tmp_path / "large", built=True)
    assert copy.size == 11 + 14 + (3 << 20)
    (bot / "run").write_text("")
    monkeypatch.setattr(snapshot, "MAX_BYTES", 1 << 20)
    assert refusal(bot, tmp_path).startswith(f"{bot}: more than 1 MiB; list the files")


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_too_many_files_folders_and_links_are_refused(bot, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(snapshot, "MAX_ENTRIES", 4)
    monkeypatch.setattr(snapshot, "_BUILT_FACTOR", 1)
    snapshot.take(bot, tmp_path / "small", built=False)
    snapshot.check_built(bot)
    more = bot / "more"
    {"file": more.touch, "folder": more.mkdir, "link": lambda: more.symlink_to("run")}[kind]()
    assert "more than 4 files, folders and links; list" in refusal(bot, tmp_path)
    with pytest.raises(UserError, match=r"more than 4 files, folders and links$"):
        snapshot.check_built(bot)


def test_unreadable_file_is_named_in_the_error(bot, tmp_path, monkeypatch):
    opened = os.open

    def refuse(path, *args, **kwargs):
        if path == "run":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    assert refusal(bot, tmp_path) == f"{bot}/run: Permission denied"


def swap_before_opening(monkeypatch, name, folder, outside):
    """Replace `folder` by a link to `outside` just before a file or folder with the given name is opened."""
    opened = os.open

    def swap(path, *args, **kwargs):
        if Path(path).name == name and not folder.is_symlink():
            folder.rename(folder.with_name("moved"))
            folder.symlink_to(outside)
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", swap)


def test_folder_that_becomes_a_link_during_the_copy_gives_its_own_files(bot, tmp_path, monkeypatch):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "main.c").write_text("secret")
    swap_before_opening(monkeypatch, "main.c", bot / "src", tmp_path / "outside")
    copy = snapshot.take(bot, tmp_path / "copy", built=False)
    assert (copy.path / "src" / "main.c").read_text() == "int main() {}\n"


def test_folder_that_becomes_a_link_before_it_is_opened_is_refused(bot, tmp_path, monkeypatch):
    (tmp_path / "outside").mkdir()
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 - numbers, not paths
    swap_before_opening(monkeypatch, "src", bot / "src", tmp_path / "outside")
    assert refusal(bot, tmp_path) == f"{bot}/src: Not a directory"
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_shortage_names_the_copy_and_is_no_fault_of_the_bot(bot, tmp_path, monkeypatch, number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number), str(bot / "run"))

    monkeypatch.setattr(snapshot, "_copy_file", fail)
    with pytest.raises(Shortage) as caught:
        snapshot.take(bot, tmp_path / "copy", built=False)
    assert str(caught.value) == f"{tmp_path}/copy: {os.strerror(number)}"
    assert not (tmp_path / "copy").exists()


def test_shortage_while_a_built_bot_is_checked_is_no_fault_of_the_bot(bot, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(Shortage, match=f"{bot}: Too many open files"):
        snapshot.check_built(bot)


def test_folder_that_exists_is_refused_and_kept(bot, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    (there / "work").write_text("of years")
    with pytest.raises(UserError, match=r"there: File exists"):
        snapshot.take(bot, there, built=False)
    assert (there / "work").read_text() == "of years"


def test_league_inside_the_folder_is_left_out(bot):
    (bot / "league" / "bots" / "x").mkdir(parents=True)
    (bot / "league" / "league.db").touch()
    inside = snapshot.take(bot, bot / "league" / "bots" / "x" / "copy", built=False)
    assert names(inside.path) == {"bot.toml", "run", "src", "src/main.c"}


def test_copy_into_the_folder_itself_does_not_contain_itself(bot):
    copy = snapshot.take(bot, bot / "copy", built=False)
    assert names(copy.path) == {"bot.toml", "run", "src", "src/main.c"}
    assert copy.entries == 4


def test_built_bot_may_have_links_inside_and_hard_links(bot):
    (bot / "src" / "link").symlink_to("../run")
    (bot / "folder").symlink_to("src")
    (bot / "hard").hardlink_to(bot / "run")
    snapshot.check_built(bot)


@pytest.mark.parametrize("limit", ["MAX_ENTRIES", "MAX_BYTES"])
def test_built_bot_may_be_ten_times_as_large(bot, monkeypatch, limit):
    monkeypatch.setattr(snapshot, limit, 1)
    (bot / "__pycache__").mkdir()
    (bot / "__pycache__" / "more").write_bytes(b"x" * 20)
    for number in range(10):
        (bot / f"{number}").touch()
    with pytest.raises(UserError, match="more than"):
        snapshot.check_built(bot)


def test_built_bot_that_was_replaced_by_a_link_is_refused(bot, tmp_path):
    (tmp_path / "link").symlink_to(bot)
    with pytest.raises(UserError, match="replaced the folder with a link"):
        snapshot.check_built(tmp_path / "link")


def test_gitignore_with_the_most_lines_may_end_with_a_line_end(tmp_path):
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / ".gitignore").write_text("a\n" * 1000)
    assert snapshot.take(tmp_path / "bot", tmp_path / "copy", built=True).entries == 1
