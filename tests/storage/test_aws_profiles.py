"""When a profile of the AWS command line is loaded, and what happens where that is not possible."""

from __future__ import annotations

import sys

import pytest

import delta_variant as dv
from delta_variant.storage.options import find_profile

KEY = "aws_access_key_id"


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        ({}, {}, None),
        ({}, {"AWS_PROFILE": "work"}, "work"),
        ({}, {"AWS_PROFILE": ""}, None),
        ({"aws_profile": "mine"}, {"AWS_PROFILE": "work"}, "mine"),
        ({KEY: "k"}, {"AWS_PROFILE": "work"}, None),
        ({KEY: "k", "aws_profile": "mine"}, {}, None),
        ({"aws_skip_signature": "true"}, {"AWS_PROFILE": "work"}, None),
        # As in the command line of AWS: an option is more explicit than the keys of the environment.
        ({}, {"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "k"}, None),
        ({"aws_profile": "mine"}, {"AWS_ACCESS_KEY_ID": "k"}, "mine"),
    ],
)
def test_credentials_that_are_more_explicit_come_before_a_profile(options, environment, expected):
    assert find_profile(options, environment) == expected


def test_without_botocore_the_error_says_what_to_install(monkeypatch):
    for module in ("botocore", "botocore.exceptions", "botocore.session"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_PROFILE", "work")
    with pytest.raises(dv.StoreError, match=r"^s3://bucket/table: .* run `pip install botocore`"):
        dv.load_snapshot("s3://bucket/table")


def test_a_profile_is_not_an_option_of_other_stores():
    with pytest.raises(dv.StoreError, match="'aws_profile' is not valid for store 'MicrosoftAzure'"):
        dv.load_snapshot(dv.Table("az://container/table", {"aws_profile": "work"}))
