"""Makes the modules that one run loaded those of the next run: a plan of what has to be loaded anew, and its application.

`reload_plan` decides by how the next run compares with what is loaded (`loaded_files`, `module_graph`, `foreign_changes`), and
`loaded_project` applies the plan. This room must not know of examples or processes. `run` loads through it.
"""
