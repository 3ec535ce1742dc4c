"""Who gives way, and that it does."""

import os
import subprocess
import sys

from ingestd.daemon.maintenance_start import NICENESS, arguments, is_low_priority


def test_a_process_gives_way_from_the_start_unless_its_first_job_is_urgent() -> None:
    assert is_low_priority(arguments(urgent=False))
    assert not is_low_priority(arguments(urgent=True))


def test_giving_way_is_worth_ten() -> None:
    program = (
        "import os; from ingestd.daemon.maintenance_start import lower_priority; lower_priority(); "
    )
    program += "print(os.getpriority(os.PRIO_PROCESS, 0))"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert int(done.stdout) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)
