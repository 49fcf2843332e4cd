"""Fixes of programs in which no size is at fault: gradients, devices, checkpoints, loaders, and what is set up or called otherwise."""
