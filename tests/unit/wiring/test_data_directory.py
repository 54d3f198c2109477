"""Making, opening and sharing a data directory: nothing of another's is touched, nothing lost is made up."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.domain.record.canonical import canonical_bytes, parse_json
from ledger.errors import DataDirectoryInUse, DataDirectoryInvalid, KeyFileUnusable
from ledger.wiring.lock import DirectoryLock
from ledger.wiring.needs import RELAY_NEEDS
from ledger.wiring.services import Services, create_data, open_data
from tests.conformance.samples import windows

pytestmark = pytest.mark.slow


def create(folder: Path) -> Services:
    return create_data(folder, key_cache=folder.parent / "cache", notify=lambda _: None)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    create(folder).close()
    return folder


@pytest.fixture
def opened(made: Path) -> Iterator[Services]:
    services = open_data(made)
    yield services
    services.close()


class TestMaking:
    def test_only_its_owner_can_read_it(self, made: Path) -> None:
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
        for path in (made / "ledger.db", made / "data.json", *(made / "keys").iterdir()):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path

    def test_a_folder_with_something_else_in_it_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "letter.txt").write_text("dear")
        with pytest.raises(DataDirectoryInvalid, match="not empty"):
            create(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]

    @pytest.mark.parametrize("kept", [(), ("keys",), ("keys", "ledger.db")])
    def test_what_was_left_half_made_is_finished(self, made: Path, kept: tuple[str, ...]) -> None:
        (made / "data.json").unlink()
        if "ledger.db" not in kept:
            (made / "ledger.db").unlink()
        if "keys" not in kept:
            for path in (made / "keys").iterdir():
                path.unlink()
        create(made).close()
        open_data(made).close()

    def test_a_file_in_the_way_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(DataDirectoryInvalid, match="file"):
            create(tmp_path / "file" / "data")


class TestOpening:
    def test_a_lost_key_is_not_replaced(self, made: Path) -> None:
        (made / "keys" / "issuer.key").unlink()
        with pytest.raises(KeyFileUnusable, match="issuer"):
            open_data(made)
        assert not (made / "keys" / "issuer.key").exists()

    def test_who_signs_nothing_needs_no_key(self, made: Path) -> None:
        (made / "keys").rename(made.parent / "keys")
        services = open_data(made, needs=RELAY_NEEDS)
        with services.database.begin() as tx:
            tx.events.append("s", windows(1), expected_version=0)
        with pytest.raises(KeyFileUnusable, match=r"no key of log; leave that to one that needs it \(beat\)"):
            services.sign_log()
        with pytest.raises(KeyFileUnusable, match=r"no key of issuer.*server"):
            _ = services.issuer_key
        services.close()

    def test_without_the_logs_key_nothing_is_signed(self, opened: Services) -> None:
        (opened.folder / "keys" / "log.key").unlink()
        services = open_data(opened.folder)
        with services.database.begin() as tx:
            tx.events.append("s", windows(1), expected_version=0)
        with pytest.raises(KeyFileUnusable, match="not at hand"):
            services.sign_log()
        services.close()

    @pytest.mark.parametrize("name", ["issuer-evm", "deployer-evm"])
    def test_a_lost_key_of_the_chain_is_not_replaced(self, opened: Services, name: str) -> None:
        (opened.folder / "keys" / f"{name}.key").unlink()
        with pytest.raises(KeyFileUnusable, match=name):
            _ = opened.chain

    @pytest.mark.parametrize("content", [None, b""])
    def test_a_lost_database_is_not_replaced(self, made: Path, content: bytes | None) -> None:
        (made / "ledger.db").unlink()
        if content is not None:
            (made / "ledger.db").write_bytes(content)
        with pytest.raises(DataDirectoryInvalid, match="restore it from a backup"):
            open_data(made)
        with pytest.raises(DataDirectoryInvalid, match="restore it from a backup"):
            create(made)

    def test_a_folder_without_one_is_named_with_what_makes_it(self, tmp_path: Path) -> None:
        with pytest.raises(DataDirectoryInvalid, match=rf"^{tmp_path} holds no ledger; make one .* --data {tmp_path}$"):
            open_data(tmp_path)

    @pytest.mark.parametrize("change", [{"format": "other"}, {"genesis_timestamp_s": -5}, {"genesis_timestamp_s": "x"}])
    def test_a_marker_that_says_something_else_is_refused(self, made: Path, change: dict[str, object]) -> None:
        marker = made / "data.json"
        marker.write_bytes(canonical_bytes(parse_json(marker.read_bytes(), max_bytes=4096) | change))
        with pytest.raises(DataDirectoryInvalid):
            open_data(made)


class TestSharing:
    def test_the_second_process_to_work_the_chain_is_refused_and_told_by_whom(self, opened: Services) -> None:
        _ = opened.chain
        program = (
            "import sys; from pathlib import Path; from ledger.wiring.services import open_data\n"
            "from ledger.errors import DataDirectoryInUse\n"
            "services = open_data(Path(sys.argv[1]))\n"
            "try: services.chain\n"
            "except DataDirectoryInUse as error: print(error.data['pid'])"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(opened.folder)], check=True, capture_output=True, text=True, timeout=60
        )
        assert done.stdout.strip().isdigit()

    def test_closing_gives_the_directory_free(self, made: Path) -> None:
        first = open_data(made)
        _ = first.chain
        with pytest.raises(DataDirectoryInUse):
            DirectoryLock(made)
        first.close()
        DirectoryLock(made).release()

    def test_what_a_killed_worker_had_leased_is_due_at_the_next_start(self, made: Path) -> None:
        first = open_data(made)
        with first.database.begin() as tx:
            mine, theirs = tx.events.append("s", windows(2), expected_version=0)
            for receipt in (mine, theirs):
                tx.outbox.add(receipt.event_id, "prove")
            for holder in (first.holder, "another directory over the same database"):
                assert tx.outbox.lease(first.clock.now_ns(), 10**15, holder=holder) is not None
        first.close()
        second = open_data(made)
        _ = second.runner
        with second.database.begin() as tx:
            again = tx.outbox.lease(second.clock.now_ns(), 10**15, holder=second.holder)
            assert again is not None
            assert again[:4] == (mine.event_id, "default", "prove", 2)
            assert tx.outbox.lease(second.clock.now_ns(), 1, holder=second.holder) is None
        second.close()
