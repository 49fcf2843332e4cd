"""Branches that a program does not take: classes and functions with other settings, and with inputs that were left out."""
