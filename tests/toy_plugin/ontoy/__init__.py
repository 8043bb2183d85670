"""A plug-in as an outside package would be: a model family, a runtime, and the engine that runs it."""
