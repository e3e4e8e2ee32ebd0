#!/bin/sh
# Looks for what a build needs, before it spends any time; says all that is missing, and how to get it.
# usage: prerequisites.sh PYTHON RUST, the interpreter to use and the oldest compiler that will do
python=$1 rust=$2 missing=0

lacks() {
	echo "missing: $1"
	echo "  get it: $2"
	missing=1
}

if ! command -v "$python" >/dev/null 2>&1; then
	lacks "Python 3.11 or newer ($python)" "apt-get install python3 python3-venv, or https://www.python.org/downloads"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	lacks "Python 3.11 or newer; $python is $("$python" -c 'import platform; print(platform.python_version())')" \
		"install a newer one, then: make PYTHON=python3.12 ..."
elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
	lacks "Python's venv" "apt-get install python3-venv"
fi

if ! command -v rustc >/dev/null 2>&1 || ! command -v cargo >/dev/null 2>&1; then
	lacks "Rust $rust or newer (cargo, rustc)" "https://rustup.rs, then open a new shell"
elif ! rustc --version >/dev/null; then
	lacks "Rust $rust or newer; rustc does not run, as it says above" "rustup default stable"
else
	found=$(rustc --version | cut -d' ' -f2)
	oldest=$(printf '%s\n%s\n' "$rust" "$found" | sort -V | head -n 1)
	[ "$oldest" = "$rust" ] || lacks "Rust $rust or newer; rustc is $found" "rustup update stable"
fi

command -v cc >/dev/null 2>&1 || lacks "a C compiler (cc), which links Rust's programs" "apt-get install gcc, or dnf install gcc"

exit $missing
