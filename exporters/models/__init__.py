"""The model registry: one TOML file per model, read as `profiler.records.spec.ModelSpec`."""
