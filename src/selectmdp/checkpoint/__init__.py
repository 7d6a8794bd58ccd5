"""Checkpoints that load whole or not at all: safetensors files and a manifest of their SHA-256.

A checkpoint is a folder. It is written beside its place under a temporary name, brought to the disk
and only then renamed, so that a crash or a full disk leaves the earlier ones as they were. Sizes
and hashes are checked before anything read is believed, and nothing is ever unpickled.
"""

from selectmdp.checkpoint.disk import CheckpointError
from selectmdp.checkpoint.folders import manifest, read, save, verify
from selectmdp.checkpoint.keeper import Keeper
from selectmdp.checkpoint.manifests import MANIFEST

__all__ = ["MANIFEST", "CheckpointError", "Keeper", "manifest", "read", "save", "verify"]
