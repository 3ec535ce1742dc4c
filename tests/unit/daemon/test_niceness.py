"""Who gives way, and that it does."""

import os
import subprocess
import sys

from ingestd.daemon.niceness import NICENESS, arguments, gives_way


def test_a_process_gives_way_from_the_start_unless_its_first_job_is_urgent() -> None:
    assert gives_way(arguments(urgent=False))
    assert not gives_way(arguments(urgent=True))


def test_giving_way_is_worth_ten() -> None:
    program = "import os; from ingestd.daemon.niceness import give_way; give_way(); "
    program += "print(os.getpriority(os.PRIO_PROCESS, 0))"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert int(done.stdout) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)
