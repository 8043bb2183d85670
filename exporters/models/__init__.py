"""The model registry: one TOML file per model, read as `profiler.records.spec.ModelSpec`.

`architectures/` holds the configuration of each network that an entry names and a table of its tensors
(`python -m scripts.tensor_tables`), `schedulers/` the schedulers' settings; `architectures/sources.toml` says where
they are from.
"""
