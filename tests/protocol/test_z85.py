"""z85 text, checked against strings of PROTOCOL.md and of Databricks."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path

import pytest
import zmq.utils.z85
from hypothesis import given
from hypothesis import strategies as st

from delta_variant.errors import InvalidZ85Error
from delta_variant.protocol import z85

SEED_METADATA = "01 02 00 06 11 24 5B 27 61 27 5D 24 5B 27 62 27 5D 5B 27 63 27 5D"
SEED_MIN_VALUE = "02 02 00 01 00 0B 0D 29 6D 69 6E 2D 73 74 72 69 6E 67 0C 01"
SEED_MAX_VALUE = "02 02 00 01 00 08 0A 1D 76 61 72 69 61 6E 74 0C 64"

NAME_ID_METADATA = "01 02 00 09 10 24 5b 27 6e 61 6d 65 27 5d 24 5b 27 69 64 27 5d"
VALUE_NAME_METADATA = "01 02 00 0a 13 24 5b 27 76 61 6c 75 65 27 5d 24 5b 27 6e 61 6d 65 27 5d"

# Strings that Databricks Runtime wrote, with the metadata, value and padding that the specification gives.
WRITTEN = {
    "0rJlc5f$EczEEx[cTw04cUW9st(>6d00icd1U*?]0000000000": (
        f"{NAME_ID_METADATA} 02 02 01 00 02 00 0b 05 31 18 {'00 ' * 8} 00"
    ),
    "0rJlc5f$EczEEx[cTw04cUW9st(>6d00rif2@adK3ig5a00000": (
        f"{NAME_ID_METADATA} 02 02 01 00 03 00 0c 09 31 31 18 0a {'00 ' * 7}"
    ),
    "0rJlc5f$EczEEx[cTw04cUW9st(>6d00rif2@jgK6951j00000": (
        f"{NAME_ID_METADATA} 02 02 01 00 03 00 0c 09 32 30 18 13 {'00 ' * 7}"
    ),
    "0rJld6c{^fC42ifwHy+etpjq%zdL820S&x52(>OPwb(Pf00000a.=4fzc]1KfAq7M": (
        f"{VALUE_NAME_METADATA} 02 02 01 00 09 00 12 18 64 {'00 ' * 7} 21 69 74 65 6d 5f 31 30 30 00 00 00"
    ),
    "0rAfabWhTiwQbUe0S-o32]H.-0000000000": (
        f"01 01 00 08 24 5b 27 6b 65 79 27 5d 02 01 00 00 09 18 c8 {'00 ' * 7} 00 00"
    ),
    "0rAf3bMW#D00%Fx0000000000": f"01 01 00 01 24 02 01 00 00 09 18 {'00 ' * 8} 00",
    "0rr9300000": "01 00 00 02 00 00 00 00",
}

Z2_OF_THE_SEED = {
    "0rJl95HpNdvjbtatpi(cu0wW^cTu=P0096c4jMddzy]{KA+PA73&{td": f"{SEED_METADATA} {SEED_MIN_VALUE}",
    "0rJl95HpNdvjbtatpi(cu0wW^cTu=P009693lsp#A+O%1BpqWW": f"{SEED_METADATA} {SEED_MAX_VALUE}",
}


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (
            "0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu",
            f"{SEED_MIN_VALUE} {SEED_METADATA}",
        ),
        ("0S&u500&]LC42A9vqZe}wb#-i1}-a+cT!xdbWhT9cTx}7v<+K", f"{SEED_MAX_VALUE} {SEED_METADATA}"),
    ],
)
def test_decode_reads_the_cut_examples_of_the_protocol(text, printed):
    """The examples of PROTOCOL.md end in a cut block."""
    assert z85.decode(text) == bytes.fromhex(printed)


@pytest.mark.parametrize(("text", "printed"), WRITTEN.items())
def test_decode_reads_strings_of_databricks(text, printed):
    """Decoding keeps padding."""
    assert z85.decode(text) == bytes.fromhex(printed)


@pytest.mark.parametrize(("text", "printed"), WRITTEN.items())
def test_encode_writes_strings_of_databricks(text, printed):
    """Padding completes the last block with zeros."""
    assert z85.encode(bytes.fromhex(printed)) == text


@pytest.mark.parametrize(("text", "printed"), Z2_OF_THE_SEED.items())
def test_encode_pads_with_zero_bytes_to_whole_blocks(text, printed):
    """Padding completes the last block with zeros."""
    data = bytes.fromhex(printed)
    assert z85.encode(data) == text
    assert z85.decode(text) == data + bytes(-len(data) % 4)


def test_every_string_in_the_golden_tables_encodes_back_to_itself(corpora: Path):
    """Check the strings in logs of Databricks."""
    texts = set()
    for log in (corpora / "delta-golden").glob("variant-stats-*/_delta_log/*.json"):
        texts.update(re.findall(r'\\"(0r[^"\\]+)\\"', log.read_text(encoding="utf-8")))
    assert len(texts) >= 4
    assert {z85.encode(z85.decode(text)) for text in texts} == texts


@given(st.binary())
def test_z85_text_needs_no_escapes_in_json(data):
    """z85 has no character that JSON escapes."""
    text = z85.encode(data)
    assert json.dumps(text) == f'"{text}"'


def test_nothing_is_the_empty_text():
    assert z85.encode(b"") == ""
    assert z85.decode("") == b""


@given(st.binary(max_size=200))
def test_decode_undoes_encode_up_to_zero_padding(data):
    assert z85.decode(z85.encode(data)) == data + bytes(-len(data) % 4)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="base64.z85encode came with Python 3.13")
@given(st.binary(max_size=200))
def test_decode_reads_the_cut_form_of_the_standard_library(data):
    """The encoder is independent of the library."""
    assert z85.decode(base64.z85encode(data).decode()) == data


@given(st.binary(max_size=200))
def test_encode_and_decode_agree_with_pyzmq(data):
    """The implementation of ZeroMQ, which wants whole blocks, is independent of the library."""
    blocks = data + bytes(-len(data) % 4)
    text = zmq.utils.z85.encode(blocks).decode()
    assert z85.encode(data) == text
    assert z85.decode(text) == zmq.utils.z85.decode(text) == blocks


@given(st.binary(min_size=1, max_size=200))
def test_decode_undoes_a_cut_last_block(data):
    """The last block of n bytes is cut to n + 1 characters."""
    cut = -len(data) % 4
    text = z85.encode(data)
    assert z85.decode(text[: len(text) - cut]) == data


@pytest.mark.parametrize("text", ["0", "0rr930", "0rr93000000"])
def test_decode_rejects_a_last_block_of_one_character(text):
    """A block of one character has no byte."""
    with pytest.raises(InvalidZ85Error, match="has only one character"):
        z85.decode(text)


@pytest.mark.parametrize(("text", "position"), [("0rr9 00000", 4), ('0rr9300"00', 7), ("0rr93~0", 5)])
def test_decode_names_a_character_outside_the_alphabet(text, position):
    """ZeroMQ RFC 32."""
    with pytest.raises(InvalidZ85Error, match=f"invalid z85 character .* at position {position}"):
        z85.decode(text)


@pytest.mark.parametrize("text", ["0rr9é", "0rr93٠٠٠٠٠", "\ud800rr93"])
def test_decode_rejects_text_that_is_not_ascii(text):
    """ZeroMQ RFC 32."""
    with pytest.raises(InvalidZ85Error, match="ASCII"):
        z85.decode(text)


@pytest.mark.parametrize("text", ["#####", "%nSc1", "0rr93#####", "###"])
def test_decode_rejects_a_block_that_exceeds_four_bytes(text):
    """`#####` is 85**5 - 1, greater than 2**32 - 1; `%nSc1` is 2**32."""
    with pytest.raises(InvalidZ85Error, match="four bytes"):
        z85.decode(text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("##093", "03 00"),
        ("0rr93##093", "01 00 00 02 03 00"),
        ("###30", "ff"),
        ("#0093", "00 03 00"),
        ("0rr93", "01 00 00 02"),
        ("", ""),
    ],
)
def test_a_last_block_may_be_padded_as_the_rust_crate_pads_it(text, printed):
    assert z85.decode_padded(text) == bytes.fromhex(printed)


@pytest.mark.parametrize("text", ["####0", "#####", "##093##093", "###31", "##961", "##093x"])
def test_other_blocks_that_begin_with_the_highest_digit_are_rejected(text):
    with pytest.raises(InvalidZ85Error):
        z85.decode_padded(text)


def test_decode_reads_the_greatest_block():
    assert z85.decode("%nSc0") == b"\xff\xff\xff\xff"
