"""Makes a virtual environment with PyTorch on a processor, of what PyPI has: some 1.3 GB.

PyPI's wheel for Linux on x86-64 is built for CUDA and does not load without its libraries, several
more gigabytes. CUDA's runtime and its profiler are small and wanted at start; the others are called
by nobody here, so libraries with nothing in them but the names stand in for them. Elsewhere
(aarch64, macOS) the wheel needs nothing of the kind.

Usage: python environment.py FOLDER SITE, where SITE has Weft and pytest.
"""

import re
import subprocess
import sys
import venv
from pathlib import Path

TORCH = "torch==2.15.0"
"""Another version as well: the back end needs 2.1 or later."""
CUDA = ["nvidia-cuda-runtime==13.2.*", "nvidia-cuda-cupti==13.2.*"]
PLAIN = ["typing-extensions", "filelock", "sympy", "networkx", "jinja2", "fsspec", "setuptools>=77"]
SUITE = ["expecttest"]
"""What PyTorch's own tests need."""
NAMES = re.compile(r"(nvshmem|nccl|cudnn|cublas|cusparse|cufft|cufile|cuFile|nvrtc)\w*")
"""Functions of the libraries that are left out."""


def main(folder: Path, site: Path) -> None:
    """Make it, from nothing."""
    venv.create(folder, with_pip=True, clear=True)
    pip = [folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, *PLAIN, *SUITE)
    run(*pip, "--no-deps", TORCH)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "weft.pth").write_text(f"import site; site.addsitedir({str(site)!r})\n")
    libraries = packages / "torch/lib"
    if missing(libraries):
        run(*pip, "--no-deps", *CUDA)
        stand_in(libraries, packages / "nvidia/cu13/lib")
    run(folder / "bin/python", "-c", "import torch; torch.ones(2) @ torch.ones(2)")


def missing(libraries: Path) -> list[str]:
    """Name the libraries that PyTorch's own ask for and nobody has."""
    found = set()
    for library in libraries.glob("libtorch*.so"):
        found |= set(re.findall(r"(\S+) => not found", run("ldd", library)))
    return sorted(found)


def stand_in(libraries: Path, folder: Path) -> None:
    """Make libraries with the names that are asked for. Whoever calls one of them is stopped."""
    absent = missing(libraries)
    text = "".join(run("nm", "-D", "--undefined-only", one) for one in libraries.glob("*.so"))
    names = sorted({name for name in re.findall(r"U (\w+)", text) if NAMES.fullmatch(name)})
    functions = "".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in names)
    compiler = ["cc", "-shared", "-fPIC", "-w", "-fno-builtin", "-xc", "-"]
    # In one of its own: of a library that is asked for by name the loader wants versions, too.
    all_names = folder / "libcuda-stand-in.so"
    run(*compiler, f"-Wl,-soname,{all_names.name}", "-o", all_names, given=functions)
    for library in absent:
        link = ["-Wl,--no-as-needed", "-xnone", all_names, "-Wl,-rpath,$ORIGIN"]
        run(*compiler, f"-Wl,-soname,{library}", "-o", folder / library, *link)


def run(*command: object, given: str = "") -> str:
    """Run a command; what it prints."""
    words = [str(word) for word in command]
    done = subprocess.run(words, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
