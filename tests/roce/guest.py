"""A Linux machine with Soft-RoCE inside QEMU, which emulates all of it: no KVM is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from image import Image
from packages import Missing

HERE = Path(__file__).parent
# In the order in which they need each other.
MODULES = """
    crc32_generic udp_tunnel ip6_udp_tunnel ib_core ib_uverbs rdma_rxe veth configfs
    ib_cm iw_cm rdma_cm rdma_ucm sch_tbf sch_ingress cls_u32 act_gact
"""
_QEMU = "qemu-system-x86_64"
_APPLETS = """
    awk cat chmod cut dmesg echo env expr grep head insmod kill killall ln ls mkdir mount ping
    poweroff ps rm sed seq sh sleep sort sysctl tail time timeout touch tr uniq wc
"""
_TOOLS = ("bin/ip", "sbin/tc", "usr/bin/rdma", "usr/bin/ibv_devices", "usr/bin/ibv_rc_pingpong")


def build(root: Path, programs: list[Path], out: Path) -> None:
    """Write the initramfs: packages of `root`, our programs, the scripts of this folder."""
    libs = "usr/lib/x86_64-linux-gnu"
    image = Image([root / "lib/x86_64-linux-gnu", root / libs])
    for folder in ("proc", "sys", "dev", "tmp", "run/netns", "var", "root", "sbin", "usr/sbin"):
        image.folder(folder)
    image.link("var/run", "/run")
    image.file("bin/busybox", root / "bin/busybox")
    for applet in _APPLETS.split():
        image.link(f"bin/{applet}", "busybox")
    for tool in _TOOLS:
        image.file(f"bin/{Path(tool).name}", root / tool)
    for name in ("librxe-rdmav34.so", "libmlx5-rdmav34.so"):
        image.file(f"{libs}/libibverbs/{name}", (root / libs / "libibverbs" / name).resolve())
    image.text("etc/libibverbs.d/rxe.driver", "driver rxe\n")
    for library in ("libibverbs.so.1", "libmlx5.so.1", "libgcc_s.so.1"):
        image.library(library)
    modules = {path.stem: path for path in (root / "lib/modules").rglob("*.ko")}
    for number, name in enumerate(MODULES.split()):
        image.file(f"modules/{number:02}-{name}.ko", modules[name])
    for program in programs:
        image.file(f"{'lib' if program.suffix else 'bin'}/{program.name}", program)
    for script in HERE.glob("*.sh"):
        image.text("init" if script.name == "init.sh" else script.name, script.read_text())
    image.text("cluster.toml", (HERE / "cluster.toml").read_text(), 0o644)
    image.write(out)


def boot(root: Path, initramfs: Path, log: Path, seconds: int) -> str:
    """Boot it, run it to its end and return what it said; the log is kept."""
    if shutil.which(_QEMU) is None:
        raise Missing(f"{_QEMU} is not installed: make system-packages")
    kernel = max((root / "boot").glob("vmlinuz-*"))
    command = [_QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1024"]
    command += ["-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"]
    command += ["-kernel", str(kernel), "-initrd", str(initramfs)]
    command += ["-append", "console=ttyS0 panic=-1 quiet mitigations=off"]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            out.write(b"\nstopped: the time is up\n")
        finally:
            process.kill()
            process.wait()
    return re.sub(r"\r|\x1b\[[0-9;?]*[a-zA-Z]", "", log.read_text(errors="replace"))
