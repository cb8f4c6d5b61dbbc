"""Runs the program pruner for the scripts of this folder, which take published command lines.

Each script translates the flags of the published script of its name into options of `pruner`. The
script prints each command before the command runs. docs/research/seeds.md lists all lines.

PRUNER in the environment names the program. Without PRUNER, the program is `pruner` on PATH, or
build/release/pruner of this repository. PRUNER_SEEDS_TRIALS=N limits each search to N trials.
"""
import argparse
import glob
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys

BUILT = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "pruner"


def refuse(message):
    """Ends the script with one line that says what is wrong and what to do."""
    print(f"{pathlib.Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(2)


class WithoutEffect(argparse.Action):
    """The action of a published flag that has no meaning here; the action says so."""

    def __call__(self, parser, namespace, values, option_string=None):
        print(f"{option_string}: {self.help}", flush=True)


class Line(argparse.ArgumentParser):
    """The flags of one published script. An unknown flag is an error."""

    def __init__(self, description):
        super().__init__(description=description)

    def error(self, message):
        refuse(f"{message}; --help lists the flags")

    def add_without_effect(self, *names, why, **options):
        """Adds a flag that is taken and ignored. `why` is printed if the flag is given."""
        self.add_argument(*names, action=WithoutEffect, help=f"no effect: {why}", default=argparse.SUPPRESS, **options)


def option(name, value):
    """Returns the words of an option; none if the value is None."""
    return [] if value is None else [name, str(value)]


def trials(published):
    """Returns the number of trials of a search: the published number, or the limit of
    PRUNER_SEEDS_TRIALS if that is less."""
    limit = os.environ.get("PRUNER_SEEDS_TRIALS", published)
    try:
        return min(int(limit), published)
    except ValueError:
        refuse(f"PRUNER_SEEDS_TRIALS: expected a number, found {limit!r}")


def program():
    """Returns the path or the name of the program pruner."""
    if "PRUNER" in os.environ:
        return os.environ["PRUNER"]
    if shutil.which("pruner"):
        return "pruner"
    if BUILT.exists():
        return str(BUILT)
    refuse(f"no program pruner: set PRUNER to its path, or build {BUILT}")


def run(*words, into=None):
    """Prints a command of pruner and runs it. If the command fails, the script ends with the exit
    code of the command. `into` names a file for the standard output of the command."""
    command = [program(), *map(str, words)]
    print("$ " + shlex.join(command) + (f" > {into}" if into else ""), flush=True)
    stopped = []
    # Ctrl-C also reaches the command, which then writes what it has.
    before = signal.signal(signal.SIGINT, lambda *_: stopped.append(True))
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE if into else None)
    except OSError as error:
        refuse(f"{command[0]}: {error.strerror}; PRUNER names the program")
    finally:
        signal.signal(signal.SIGINT, before)
    if done.returncode or stopped:
        sys.exit(130 if stopped else done.returncode if done.returncode > 0 else 1)
    if into:
        pathlib.Path(into).write_bytes(done.stdout)


def need_files(patterns, remedy):
    """Refuses if no file matches one of the patterns. `remedy` says how to get such a file."""
    for pattern in patterns:
        if not glob.glob(pattern):
            refuse(f"{pattern}: no such file; {remedy}")


def need_weights(file, model):
    """Refuses if a file of weights is not there, with the line that makes the file."""
    if file is None or pathlib.Path(file).exists():
        return
    made = f"pruner train --dataset dataset_pam_k80_500.pkl --model {model} -o {file}"
    if model == "pam" and "fine" in pathlib.Path(file).name:
        made = f"pruner fine-tune --dataset pam_a100_dataset.pkl --load-model pam_k80_1500.pkl -o {file}"
    refuse(f"{file}: no such file, and Pruner ships no weights of GPUs; this line makes it: {made}")
