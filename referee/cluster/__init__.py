"""Play a tournament on a Dask cluster. The results are the same as on one machine.

- `connection` finds the scheduler, or starts a cluster on this machine, and prepares Dask workers for a tournament.
- `dask_workers` and `remote_workers` are the driver's side. `dask_workers` knows which Dask workers can play, and `remote_workers` sends
  games to them. `tournament.workers` does the same with local processes.
- `member` is the other side: the functions that the driver calls in a Dask worker.
- `host` starts the Dask workers of a machine.

Dask's scheduler knows which workers there are, and carries messages. It does not decide where games are played: each task names
the only worker that may run it. If a worker is lost, the driver, not Dask, gives its games to another worker.
"""
