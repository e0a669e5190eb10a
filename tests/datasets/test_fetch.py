"""Data files are found, downloaded whole or not at all, and errors say what to do."""

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from file_server import FileServer, serving
from hocal._base.files import hold
from hocal.datasets import DownloadError, fetch, fetching, list_files
from hocal.datasets.download import download
from hocal.datasets.fetching import cache_folder

CONTENT = bytes(range(256)) * 1200  # several chunks
HALF = len(CONTENT) // 2
SHA256 = hashlib.sha256(CONTENT).hexdigest()

DATA = Path(os.environ.get("HOCAL_DATA", "."))
CROWD = ("crowd/CF_amt.csv", "crowd/SP_amt.csv")
needs_data = pytest.mark.skipif(
    "HOCAL_DATA" not in os.environ, reason="HOCAL_DATA does not name the data directory"
)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving() as running:
        running.files["file.bin"] = CONTENT
        yield running


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No data folder but an empty cache, and no proxy before the server."""
    for name in ("HOCAL_DATA", "HOCAL_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new" / "file.bin"


def get(
    server: FileServer,
    target: Path,
    *,
    sha256: str = SHA256,
    timeout: float = 5.0,
    **options: object,
) -> None:
    """Download the server's file with two quick further tries."""
    url = f"{server.url}/file.bin"
    download(
        url, target, size=len(CONTENT), sha256=sha256, timeout=timeout, waits=(0, 0), **options
    )  # type: ignore[arg-type]


def leave_part(target: Path, content: bytes) -> None:
    """Pretend that an earlier download was interrupted."""
    target.parent.mkdir(parents=True)
    target.with_name("file.bin.part").write_bytes(content)


def test_the_target_holds_what_was_served_and_nothing_is_beside_it(
    server: FileServer, target: Path
) -> None:
    get(server, target)

    assert target.read_bytes() == CONTENT
    assert os.listdir(target.parent) == ["file.bin"]


def test_progress_rises_from_nothing_to_everything(server: FileServer, target: Path) -> None:
    seen: list[tuple[int, int]] = []

    get(server, target, progress=lambda *numbers: seen.append(numbers))

    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert seen == sorted(seen)
    assert len(seen) > 3


def test_a_broken_connection_resumes_where_it_stopped(server: FileServer, target: Path) -> None:
    server.behaviours = ["break off", "break off"]

    get(server, target)

    assert target.read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={HALF}-", f"bytes={HALF + HALF // 2}-"]


def test_progress_of_a_resumed_download_starts_at_the_bytes_at_hand(
    server: FileServer, target: Path
) -> None:
    leave_part(target, CONTENT[:1000])
    seen: list[int] = []

    get(server, target, progress=lambda so_far, _: seen.append(so_far))

    assert seen[0] == 1000


def test_a_server_that_stops_sending_is_asked_again(server: FileServer, target: Path) -> None:
    server.behaviours = ["hang"]

    get(server, target, timeout=0.2)

    assert target.read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={HALF}-"]


def test_a_server_that_never_sends_in_time_is_given_up(server: FileServer, target: Path) -> None:
    server.behaviours = ["hang", "mute", "mute"]

    with pytest.raises(
        DownloadError,
        match=r"file\.bin could not be downloaded: the server did not answer in time\.",
    ):
        get(server, target, timeout=0.1)
    assert target.with_name("file.bin.part").read_bytes() == CONTENT[:HALF]


@pytest.mark.parametrize("status", ["500", "502", "503", "429"])
def test_a_passing_error_of_the_server_is_waited_for(
    server: FileServer, target: Path, status: str
) -> None:
    server.behaviours = [status, status]

    get(server, target)

    assert target.read_bytes() == CONTENT


def test_a_lasting_error_of_the_server_is_reported_after_all_tries(
    server: FileServer, target: Path
) -> None:
    server.behaviours = ["500"] * 3

    with pytest.raises(
        DownloadError,
        match=r"http://127.*/file\.bin could not be downloaded: HTTP 500 Internal Server",
    ):
        get(server, target)
    assert len(server.ranges) == 3


def test_a_missing_page_is_reported_at_once(server: FileServer, target: Path) -> None:
    server.behaviours = ["404"]

    with pytest.raises(
        DownloadError, match=r"http://127.*/file\.bin could not be downloaded: HTTP 404 Not Found\."
    ):
        get(server, target)
    assert len(server.ranges) == 1


def test_redirects_are_followed_also_when_resuming(server: FileServer, target: Path) -> None:
    server.behaviours = ["redirect", "redirect", "break off", "redirect"]

    get(server, target)

    assert target.read_bytes() == CONTENT
    assert server.ranges[-1] == f"bytes={HALF}-"


@pytest.mark.parametrize("behaviour", ["ignore the range", "416", "shifted", "unnumbered"])
def test_a_server_that_cannot_resume_sends_the_whole(
    server: FileServer, target: Path, behaviour: str
) -> None:
    leave_part(target, CONTENT[:1000])
    server.behaviours = [behaviour]

    get(server, target)

    assert target.read_bytes() == CONTENT
    assert server.ranges[0] == "bytes=1000-"


def test_wrong_content_leaves_no_file_and_says_both_checksums(
    server: FileServer, target: Path
) -> None:
    server.behaviours = ["corrupt"]
    got = hashlib.sha256(bytes(255 - byte for byte in CONTENT)).hexdigest()

    with pytest.raises(
        DownloadError, match=f"has another content: expected sha256 {SHA256}, got {got}"
    ):
        get(server, target)
    assert os.listdir(target.parent) == []
    assert len(server.ranges) == 1


def test_wrong_content_leaves_the_old_file_as_it_was(server: FileServer, target: Path) -> None:
    target.parent.mkdir()
    target.write_bytes(b"old")
    server.behaviours = ["corrupt"]

    with pytest.raises(DownloadError, match="has another content"):
        get(server, target)
    assert target.read_bytes() == b"old"


def test_pieces_that_do_not_fit_are_dropped_and_the_whole_is_fetched_once(
    server: FileServer, target: Path
) -> None:
    leave_part(target, b"x" * 1000)

    get(server, target)

    assert target.read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-", None]


def test_wrong_content_after_a_second_whole_download_is_reported(
    server: FileServer, target: Path
) -> None:
    leave_part(target, CONTENT[:1000])
    server.behaviours = ["corrupt", "corrupt"]

    with pytest.raises(DownloadError, match="has another content"):
        get(server, target)
    assert os.listdir(target.parent) == []


def test_a_page_of_another_size_is_refused_before_it_is_read(
    server: FileServer, target: Path
) -> None:
    """What a network with a login page answers to everything."""
    server.behaviours = ["another size"]

    with pytest.raises(
        DownloadError, match=f"is another file: expected {len(CONTENT)} bytes, the server offers 27"
    ):
        get(server, target)


def test_more_bytes_than_expected_are_refused(server: FileServer, target: Path) -> None:
    server.behaviours = ["more than announced"]

    with pytest.raises(
        DownloadError, match=f"is another file: expected {len(CONTENT)} bytes, got more"
    ):
        get(server, target)
    assert os.listdir(target.parent) == []


def test_a_part_longer_than_the_file_is_dropped(server: FileServer, target: Path) -> None:
    leave_part(target, CONTENT + b"more")

    get(server, target)

    assert target.read_bytes() == CONTENT
    assert server.ranges == [None]


def test_a_complete_part_needs_no_server(target: Path) -> None:
    leave_part(target, CONTENT)

    download("http://127.0.0.1:9/file.bin", target, size=len(CONTENT), sha256=SHA256, waits=())

    assert target.read_bytes() == CONTENT


def test_an_interrupt_leaves_a_part_and_the_next_download_goes_on_from_it(
    server: FileServer, target: Path
) -> None:
    def interrupt(so_far: int, _: int) -> None:
        if so_far > HALF:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(server, target, progress=interrupt)
    assert os.listdir(target.parent) == ["file.bin.part"]

    get(server, target)

    assert target.read_bytes() == CONTENT
    assert int(str(server.ranges[1]).strip("bytes=-")) > HALF


def test_two_downloads_at_once_do_not_disturb_each_other(server: FileServer, target: Path) -> None:
    """The second runs from start to end while the first has half of the file."""
    leave_part(target, CONTENT[:1000])
    others: list[bytes] = []

    def meanwhile(so_far: int, _: int) -> None:
        if so_far > HALF and not others:
            get(server, target)
            others.append(target.read_bytes())

    get(server, target, progress=meanwhile)

    assert others == [CONTENT]
    assert target.read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-", None]  # only one of them can claim the part
    assert os.listdir(target.parent) == ["file.bin"]


def test_a_killed_process_leaves_no_target_and_the_next_download_works(
    server: FileServer, target: Path
) -> None:
    code = f"""
import os, signal
from pathlib import Path
from hocal.datasets.download import download
download({server.url + "/file.bin"!r}, Path({str(target)!r}),
         size={len(CONTENT)}, sha256={SHA256!r},
         progress=lambda so_far, _: so_far > {HALF} and os._exit(9))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert not target.exists()

    get(server, target)

    assert target.read_bytes() == CONTENT


def test_the_longest_part_of_killed_processes_is_taken_over_and_the_others_are_removed(
    server: FileServer, target: Path
) -> None:
    leave_part(target, CONTENT[:1000])
    for number, length in ((0, 10), (1, HALF)):
        target.with_name(f"file.bin.{number:08}.part").write_bytes(CONTENT[:length])

    get(server, target)

    assert server.ranges == [f"bytes={HALF}-"]
    assert target.read_bytes() == CONTENT
    assert os.listdir(target.parent) == ["file.bin"]


def test_the_part_of_a_running_download_is_left_alone(server: FileServer, target: Path) -> None:
    target.parent.mkdir()
    running = target.with_name("file.bin.00000000.part")

    with hold(running):
        get(server, target)

    assert sorted(os.listdir(target.parent)) == ["file.bin", running.name]


def test_nobody_at_the_address_is_reported(target: Path) -> None:
    with serving() as gone:
        url = f"{gone.url}/file.bin"

    with pytest.raises(DownloadError, match=r"file\.bin could not be downloaded: .*refused"):
        download(url, target, size=1, sha256=SHA256, waits=(0,))


def test_an_unknown_server_is_reported_without_waiting(target: Path) -> None:
    """Names under .invalid never exist, so this is what a machine without a network sees."""
    started = time.perf_counter()

    with pytest.raises(
        DownloadError, match=r"http://hocal\.invalid/file\.bin could not be downloaded"
    ):
        download("http://hocal.invalid/file.bin", target, size=1, sha256=SHA256, waits=(60,))
    assert time.perf_counter() - started < 30


def test_an_address_that_makes_no_sense_is_reported_at_once(target: Path) -> None:
    with pytest.raises(DownloadError, match="could not be downloaded: nonnumeric port: 'x'"):
        download("http://127.0.0.1:x/file.bin", target, size=1, sha256=SHA256, waits=(60,))


def serve_data(server: FileServer, *paths: str) -> None:
    """Serve real data files."""
    for path in paths:
        server.files[path] = (DATA / path).read_bytes()


@needs_data
def test_fetch_downloads_to_the_cache_what_the_loaders_then_find(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_data(server, *CROWD)
    monkeypatch.setenv("HOCAL_MIRROR", f"{server.url}/")
    seen: list[tuple[str, int, int]] = []

    paths = fetch("crowd", progress=lambda *what: seen.append(what))

    assert paths == [cache_folder() / path for path in CROWD]
    assert {name for name, _, _ in seen} == set(CROWD)
    assert [file.location for file in list_files() if file.name == "crowd"] == paths


@needs_data
@pytest.mark.parametrize("name", ["cifar10h", "ferplus", "crowd"])
def test_every_public_file_has_the_recorded_size_and_checksum(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, name: str, tmp_path: Path
) -> None:
    serve_data(server, *(file.path for file in list_files() if file.name == name))
    monkeypatch.setenv("HOCAL_MIRROR", server.url)

    for path in fetch(name, data_home=tmp_path):
        assert path.read_bytes() == (DATA / path.relative_to(tmp_path)).read_bytes()


@needs_data
def test_a_second_fetch_asks_no_server(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_data(server, *CROWD)
    monkeypatch.setenv("HOCAL_MIRROR", server.url)
    fetch("crowd")

    fetch("crowd")

    assert len(server.ranges) == 2


@needs_data
def test_the_named_folder_comes_before_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCAL_DATA", str(DATA))

    assert fetch("crowd") == [DATA / path for path in CROWD]


@needs_data
def test_data_home_is_the_only_folder_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOCAL_DATA", str(DATA))

    assert {file.location for file in list_files(data_home=tmp_path)} == {None}
    assert None not in {file.location for file in list_files()}


def test_a_failed_download_gives_the_exact_instructions(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOCAL_MIRROR", server.url)

    with pytest.raises(DownloadError) as caught:
        fetch("cifar10h")

    for part in (
        f"{server.url}/cifar10h/cifar10h-counts.npy could not be downloaded: HTTP 404 Not Found.",
        "https://raw.githubusercontent.com/jcpeterson/cifar-10h/"
        "48da312b193b82e6939ec20f23d1f09cbdd849c8/data/",
        "(800128 bytes, sha256 9b36b4550349af56c79083356312eb4af856cc5fd3caf1f669d40b9d0bbb69ff)",
        f"put it at {cache_folder() / 'cifar10h' / 'cifar10h-counts.npy'}",
        "HOCAL_DATA to a folder that holds cifar10h/cifar10h-counts.npy",
    ):
        assert part in str(caught.value)


def test_a_file_that_cannot_be_downloaded_says_how_to_make_it_and_where_to_put_it(
    tmp_path: Path,
) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        fetch("chaosnli", data_home=tmp_path)

    for part in (
        f"`chaosnli/chaosnli-snli.npz` is not in {tmp_path} and cannot be downloaded",
        "https://github.com/easonnie/ChaosNLI",
        "`counts` int16 (1514, 3)",
        f"Put it at {tmp_path / 'chaosnli' / 'chaosnli-snli.npz'}",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "name", ["chaosnli", "cifar10_images", "cifar10_softmax", "ferplus_images"]
)
def test_every_file_to_make_by_hand_has_a_recipe(name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"numpy\.savez"):
        fetch(name)


def test_a_public_file_with_other_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "crowd").mkdir()
    (tmp_path / "crowd" / "CF_amt.csv").write_text("worker,1,0,0,9\n")

    with pytest.raises(
        ValueError,
        match=r"must be the public file .* with 182225 bytes .* got 15 bytes .* Remove it",
    ):
        fetch("crowd", data_home=tmp_path)


def test_an_unknown_data_set_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`name` must be one of 'cifar10h', .*, got 'imagenet'"):
        fetch("imagenet")


def test_a_data_folder_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCAL_DATA", "/no/such/folder")

    with pytest.raises(
        ValueError, match="`HOCAL_DATA` must name a folder that exists, got '/no/such/folder'"
    ):
        list_files()


def test_a_mirror_that_is_no_web_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCAL_MIRROR", "file:///etc")

    with pytest.raises(
        ValueError, match="`HOCAL_MIRROR` must start with http:// or https://, got 'file:///etc'"
    ):
        fetch("crowd")


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", ".cache/hocal"),
        ("darwin", "Library/Caches/hocal"),
        ("win32", "AppData/Local/hocal"),
    ],
)
def test_the_cache_is_where_the_system_keeps_such_files(
    monkeypatch: pytest.MonkeyPatch, platform: str, folder: str
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(sys, "platform", platform)

    assert cache_folder() == Path.home() / folder


def test_public_files_come_from_a_pinned_commit_of_their_own_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(fetching, "download", lambda url, *_, **__: asked.append(url))

    for name in ("cifar10h", "crowd", "ferplus"):
        fetch(name)

    assert all(
        re.match(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/", url)
        for url in asked
    )
    assert len(asked) == 4
