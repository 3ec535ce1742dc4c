"""A container as a process: namespaces for processes and mounts, a root of its own, no other walls.

Its root is this machine's, read-only unless the container may write there, with the folders of its
volumes at their places, the environment of this checkout as the image's /opt/ingestd, and a file of
hosts, the only source of names, since another network may have an answer for each. The network is
this machine's, and so is the user: what the security context says of users and capabilities is
judged by the API server only.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ingestd.dev.jars import cache_folder
from tests.support.chart import ROOT

NETWORK = "/pod-network"
"""Where a container has a folder with its file `hosts`, which may be replaced while it runs."""

_IMAGE = "/opt/ingestd"
_SETUP = """
set -e
mount -t tmpfs none "$LAYER"
mkdir "$LAYER/up" "$LAYER/work" "$LAYER/root"
root="$LAYER/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$LAYER/up,workdir=$LAYER/work" "$root"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
while read -r mode source target; do
    if [ -d "$source" ]; then mkdir -p "$root$target"; else touch "$root$target"; fi
    mount --rbind "$source" "$root$target"
    if [ "$mode" = ro ]; then mount -o remount,bind,ro "$root$target"; fi
done <<END
$MOUNTS
END
ln -sf "$NETWORK/hosts" "$root/etc/hosts"
echo "hosts: files" > "$root/etc/nsswitch.conf"
mount -t proc proc "$root/proc"
if [ "$READ_ONLY" = 1 ]; then mount -o remount,bind,ro "$root"; fi
echo "$POD" > /proc/sys/kernel/hostname
unset LAYER MOUNTS NETWORK READ_ONLY POD
exec chroot "$root" /usr/bin/env -C /tmp -u INSIDE PATH="$INSIDE" "$@"
"""


class Mount(NamedTuple):
    """A folder or file of this machine at a place of the container."""

    source: Path
    target: str
    read_only: bool = False


class Container:
    """One run of a container; `code` is its exit code, None while it runs."""

    def __init__(
        self,
        name: str,
        folder: Path,
        command: Sequence[str],
        environment: Mapping[str, str],
        mounts: Sequence[Mount],
        *,
        read_only: bool,
    ) -> None:
        self.log = folder / f"{name}.log"
        self._signalled = False
        layer = folder / f"{name}.layer"
        layer.mkdir(exist_ok=True)
        setup = {
            "LAYER": str(layer),
            "MOUNTS": "\n".join(_line(mount) for mount in [*_ordered(mounts), *_image()]),
            "NETWORK": NETWORK,
            "READ_ONLY": str(int(read_only)),
            "POD": environment["HOSTNAME"],
            "INSIDE": environment["PATH"],
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        }
        rights = [] if os.geteuid() == 0 else ["--map-root-user"]
        walls = ["--mount", "--pid", "--uts", "--fork", "--kill-child"]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                ["unshare", *rights, *walls, "/bin/sh", "-c", _SETUP, "sh", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**environment, **setup},
            )

    @property
    def code(self) -> int | None:
        """As a shell has it: 128 and the number of the signal that ended it."""
        code = self._process.poll()
        return 128 - code if code is not None and code < 0 else code

    def terminate(self) -> None:
        """SIGTERM to its first process, once."""
        if not self._signalled:
            self._signalled = True
            for pid in _children(self._process.pid):
                os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to all of its processes."""
        self._process.kill()
        self._process.wait(60)

    def pids(self) -> set[int]:
        """All of its processes."""
        found: set[int] = set()
        waiting = [self._process.pid]
        while waiting:
            pid = waiting.pop()
            found.add(pid)
            waiting += _children(pid)
        return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:
            continue
    return found


def _ordered(mounts: Sequence[Mount]) -> list[Mount]:
    """Outer folders first; a place below a symbolic link is the one that the link names."""
    found = [mount._replace(target=os.path.realpath(mount.target)) for mount in mounts]
    return sorted(found, key=lambda mount: mount.target.count("/"))


def _image() -> list[Mount]:
    """What the image brings: this checkout's environment, which needs other folders of the user."""
    own = [ROOT, Path(sys.base_prefix), cache_folder()]
    return [Mount(Path(sys.prefix), _IMAGE), *(Mount(path, str(path)) for path in own)]


def _line(mount: Mount) -> str:
    return f"{'ro' if mount.read_only else 'rw'} {mount.source} {mount.target}"


def image_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The image's variables, with Java and the archive of classes where this machine has them."""
    found = Path(shutil.which("java") or "").resolve().parents[1]
    java = os.environ.get("JAVA_HOME") or str(found)
    return {
        **variables,
        "JAVA_HOME": java,
        "PATH": f"{_IMAGE}/bin:{java}/bin:/usr/local/bin:/usr/bin:/bin",
        "INGESTD_CLASS_ARCHIVE": str(cache_folder() / "spark"),
    }
