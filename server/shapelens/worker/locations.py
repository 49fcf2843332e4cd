"""Where our own code and torch's lie: the frames of files below these folders are not the user's."""

from __future__ import annotations

import os

import torch

WORKER = os.path.dirname(os.path.abspath(__file__)) + os.sep
OURS = os.path.dirname(os.path.dirname(WORKER)) + os.sep  # with what the worker shares with the server
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
