"""Play a tournament on a Dask cluster. The results are the same as on one machine.

- `connection` finds the scheduler, or starts a cluster on this machine, and prepares Dask workers for a tournament.
- `dask_workers` and `remote_workers` are the driver's side. `dask_workers` knows which Dask workers can play, and `remote_workers` sends
  games to them. `tournament.workers` does the same with local processes.
- `member` is the other side: the functions that the driver calls in a Dask worker.
- `host` starts the Dask workers of a machine.

Dask's scheduler knows which workers there are, and carries messages. It decides nothing: each task names its only worker, and the
driver, not Dask, gives the games of a lost worker to another one.
"""
