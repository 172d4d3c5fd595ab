"""Play a tournament on the workers of a Dask cluster, with the results of one machine.

- `connection` finds the scheduler, or starts a cluster on this machine.
- `remote_workers` is the driver's side: it sends games to Dask workers. `tournament.workers` does the same with local processes.
- `member` is the other side: the functions that the driver calls in a Dask worker.
- `host` starts the Dask workers of a machine.

Dask's scheduler knows which workers there are, and carries messages. It decides nothing: each task names its worker, and a
lost task is never repeated by Dask, only by the driver.
"""
