"""Which variables of the environment are kept from user code."""

from __future__ import annotations

import pytest

from shapelens.runner.secrets import HIDDEN, is_secret, without_secrets

SECRETS = """
    HF_TOKEN GITHUB_TOKEN WANDB_API_KEY OPENAI_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN DB_PASSWORD MYSQL_PASSWD
    SECRET_KEY DJANGO_SECRET APIKEY NPM_AUTHTOKEN GOOGLE_APPLICATION_CREDENTIALS AZURE_CLIENT_SECRET KUBECONFIG SSH_AUTH_SOCK api_key TOKENS
"""
HARMLESS = """
    PATH HOME TOKENIZERS_PARALLELISM KEYBOARD_LAYOUT CUDA_VISIBLE_DEVICES PYTHONPATH OMP_NUM_THREADS HF_HOME AWS_REGION MONKEY AUTHOR
    PASSES XDG_SESSION_ID MASTER_ADDR LANG TMPDIR VIRTUAL_ENV CONDA_PREFIX NUM_TOKENIZER_THREADS
"""


@pytest.mark.parametrize("name", SECRETS.split())
def test_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", HARMLESS.split())
def test_what_is_none(name: str) -> None:
    assert not is_secret(name)


def test_a_placeholder_stands_in_for_them() -> None:
    assert without_secrets({"HF_TOKEN": "hf_x", "EMPTY_TOKEN": "", "HOME": "/h"}) == {"HF_TOKEN": HIDDEN, "EMPTY_TOKEN": "", "HOME": "/h"}
