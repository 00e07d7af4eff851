"""Threads read the files of a local table ahead: order, errors, limits, and the end of the threads."""

import threading
import time

import pyarrow as pa
import pytest

from delta_variant import DataFileError, read_table, write_table
from delta_variant.log.load import load_snapshot
from delta_variant.read import rows
from delta_variant.read.file_reader import FileEntry

PREFIX = "delta-variant_"
OTHERS: list[threading.Thread] = []


def files(sizes):
    return [FileEntry(str(number), {}, size=size) for number, size in enumerate(sizes)]


def int_of(file):
    return int(file.path)


def fail(file):
    raise AssertionError(file)


@pytest.fixture(autouse=True)
def threads_before():
    """Keep the threads that tests before may have left to the garbage collector."""
    OTHERS[:] = threading.enumerate()


def assert_threads_end():
    """A read that is closed does not wait for its threads, which end at once."""
    deadline = time.monotonic() + 10
    while reading_threads() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not reading_threads()


def reading_threads():
    found = threading.enumerate()
    return [thread for thread in found if thread.name.startswith(PREFIX) and thread not in OTHERS]


@pytest.fixture
def table(tmp_path):
    """A table of 30 files, each with two rows of its number."""
    path = tmp_path / "table"
    for number in range(30):
        rows = pa.table({"id": [number, number], "event": [f'{{"n": {number}}}', '{"n": -1}']})
        write_table(path, rows, variant_columns=["event"], mode="append")
    return path


def test_results_have_the_order_of_the_files():
    release = threading.Event()

    def start(file):
        # The first file that is read ahead is finished last.
        if file.path == "1":
            release.wait(10)
        elif file.path == "2":
            release.set()
        return int_of(file)

    assert list(rows.read_ahead(files([1] * 20), int_of, start)) == list(range(20))
    assert not reading_threads()


def thread_of(file):
    return threading.current_thread()


def test_the_first_file_is_read_by_the_caller():
    own = threading.current_thread()
    assert list(rows.read_ahead(files([1]), thread_of, fail)) == [own]
    assert list(rows.read_ahead([], fail, fail)) == []
    threads = list(rows.read_ahead(files([1, 1, 1]), thread_of, thread_of))
    assert threads[0] is own
    assert own not in threads[1:]


def test_files_are_read_while_a_large_one_before_them_is_consumed():
    begun = threading.Event()
    sizes = [rows.BYTES_AHEAD * 5, 1, rows.BYTES_AHEAD, 1]
    started = rows.read_ahead(files(sizes), thread_of, lambda file: begun.set() or thread_of(file))
    threads = [next(started)]
    assert begun.wait(10)
    threads += started
    own = threading.current_thread()
    assert [thread is own for thread in threads] == [True, False, True, False]


def test_an_error_is_raised_in_the_place_of_its_file():
    def start(file):
        if file.path in ("2", "4"):
            raise DataFileError("broken", file=file.path)
        return file.path

    started = rows.read_ahead(files([1] * 6), start, start)
    assert [next(started), next(started)] == ["0", "1"]
    with pytest.raises(DataFileError) as caught:
        next(started)
    assert caught.value.file == "2"
    assert not reading_threads()


@pytest.mark.parametrize("size", [rows.BYTES_AHEAD, rows.BYTES_AHEAD * 5, None])
def test_large_files_are_read_one_after_another(size):
    begun = []
    started = rows.read_ahead(files([size] * 5), lambda file: begun.append(file.path), fail)
    for number in range(5):
        next(started)
        assert begun == [str(each) for each in range(number + 1)]


def test_the_files_in_flight_are_bounded():
    begun = []

    def start(file):
        begun.append(file.path)

    started = rows.read_ahead(files([rows.BYTES_AHEAD // 3] * 20), start, start)
    next(started)
    assert len(begun) <= 4
    started.close()
    assert_threads_end()
    assert len(begun) <= 4


def test_rows_of_many_files_come_in_order(table):
    scan = read_table(table, columns={"id": "id", "n": "event:n::int"})
    rows = scan.to_pylist()
    order = [row["id"] for row in rows]
    assert sorted(order) == sorted([*range(30)] * 2)
    assert rows == [{"id": number, "n": n} for number in order[::2] for n in (number, -1)]
    assert rows == scan.to_pylist()
    assert read_table(table, where="event:n::int = -1").count() == 30
    assert not reading_threads()


def test_closing_a_read_ends_its_threads(table):
    batches = read_table(table).to_batches()
    next(batches)
    batches.close()
    assert_threads_end()


def test_rows_before_a_broken_file_are_returned(table):
    paths = load_snapshot(table).files["path"].to_pylist()
    (table / paths[20]).write_bytes(b"PAR1 broken")
    batches = read_table(table, columns=["id"]).to_batches()
    assert sum(next(batches).num_rows for _ in range(20)) == 40
    with pytest.raises(DataFileError) as caught:
        next(batches)
    assert caught.value.file == paths[20]
    assert not reading_threads()
