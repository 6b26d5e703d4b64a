"""A pool of workers as a server of its own, for tests of what runners say to it."""

from rocsteady.runners.servers.flink import worker_program
from rocsteady.runners.servers.processes import HOST, Server, free_port, listens


class WorkerPool(Server):
    """A pool of Python workers (`rocsteady-worker --pool`): processes of this Python, with its import path.

    For jobs with --environment_type=EXTERNAL --environment_config=`address`. The workers end with the pool.
    """

    def __init__(self, folder):
        port = free_port()
        super().__init__(
            "worker-pool",
            folder.absolute(),
            [str(worker_program(folder)), "--pool", f"{HOST}:{port}"],
            answers=lambda _: listens(port),
            port=port,
        )
