"""The isolation ladder: what bots are kept from, on each of its rungs, and how that is known.

`ladder.select_isolation` finds the rung, `ladder.make_launcher` starts programs on it. The rest is how: `bubblewrap`,
`seccomp`, `cgroups`, `slots` (user ids) and `places` (what a sandbox shows) make a sandbox; `init` runs in
it; `probe` tries what is forbidden there, with `trespass` inside and `orphan` in the referee's place.
"""
