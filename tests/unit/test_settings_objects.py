"""Objects of settings whose libraries are not there (worker/unknown/settings_objects.py)."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from shapelens.worker.unknown.settings_objects import SettingsObject
from shapelens.worker.unknown.stand_ins import is_absent


def test_entries_are_attributes_and_so_are_those_of_dicts_in_it() -> None:
    settings = SettingsObject({"model": {"width": 8}}, depth=2)
    settings.model.heads = 4
    assert (settings.depth, settings.model.width, settings["model"]["heads"]) == (2, 8, 4)
    del settings.depth
    assert "depth" not in settings


def test_lists_and_other_settings_are_merged_into_it() -> None:
    settings = SettingsObject({"model": {"width": 8, "depth": 2}})
    settings.merge_from_list(["model.width", 64, "optim.lr", 0.1])
    settings.merge_from_other_cfg({"model": {"depth": 3}})
    assert settings == {"model": {"width": 64, "depth": 3}, "optim": {"lr": 0.1}}


def test_a_file_is_read_and_one_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    (tmp_path / "net.yaml").write_text("model:\n  width: 32\n")
    settings = SettingsObject({"model": {"width": 8, "depth": 2}})
    settings.merge_from_file(tmp_path / "nowhere.yaml")
    assert settings.model.width == 8
    settings.merge_from_file(str(tmp_path / "net.yaml"))
    assert settings == {"model": {"width": 32, "depth": 2}}


def test_what_no_settings_say_is_unknown() -> None:
    assert is_absent(SettingsObject().width)


def test_copies_are_apart() -> None:
    settings = SettingsObject({"model": {"width": 8}})
    for other in (settings.clone(), copy.copy(settings.model), pickle.loads(pickle.dumps(settings))):
        assert isinstance(other, SettingsObject)
    other = settings.clone()
    other.model.width = 16
    assert settings.model.width == 8
