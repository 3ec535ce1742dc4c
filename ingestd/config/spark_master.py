"""What a `spark.master` implies: where Spark runs the tasks of a pipeline."""


def has_executors(master: str) -> bool:
    """Return whether tasks run in executor processes, and not in the driver's JVM.

    `master` is the Spark master, such as `local[4]`, which has none, or `k8s://https://HOST:PORT`.
    """
    return _kind(master) != "local"


def is_one_machine(master: str) -> bool:
    """Return whether all tasks run on the machine of the driver.

    `master` is the Spark master, such as `local[4]` or `k8s://https://HOST:PORT`.
    """
    return _kind(master) in ("local", "local-cluster")


def _kind(master: str) -> str:
    return master.partition("[")[0]
