#!/usr/bin/env python3
"""Runs the commands of Django."""
import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evenings.settings")
    execute_from_command_line(sys.argv)
