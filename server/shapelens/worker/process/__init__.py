"""The worker's processes: the one that holds the pipes, the zygote that has loaded the project, the children that do one run each.

User code never runs in the process that holds the pipes, where there is fork. The room knows nothing of shapes: it forks, relays, limits
and ends.
"""
