"""Variables of the environment that hold secrets by their names: the processes that run user code do not get them."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "hidden-by-shapelens"  # in the place of a secret: code that only asks whether there is one goes on
_WORD = r"(?:\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY)S?|KEYS?|PASS|CREDENTIALS?|AUTH|COOKIES?)"
_NAME = re.compile(rf"(?:^|_){_WORD}(?:_|$)", re.IGNORECASE)
# They tell where secrets are, or how to get them.
_CLOUD = re.compile(
    r"^(?:AWS_(?!REGION|DEFAULT_REGION)|AZURE_|GOOGLE_APPLICATION_|GCP_|GOOGLE_CLOUD_K|DIGITALOCEAN_|KUBECONFIG$|SSH_AUTH_SOCK$|GPG_AGENT_INFO$"
    r"|VSCODE_GIT_|GIT_ASKPASS$|SSH_ASKPASS$|DBUS_SESSION_BUS_ADDRESS$)",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """True if a variable of this name holds a secret."""
    return _NAME.search(name) is not None or _CLOUD.search(name) is not None


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment with a placeholder for each secret."""
    return {name: HIDDEN if is_secret(name) and value else value for name, value in environment.items()}
