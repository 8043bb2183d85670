package org.ondeviceprofiler.core

import java.nio.file.Path

/** What an inference runtime must do for a runner. */
public interface Engine {
    /** Make every function of a component ready; its files lie in `folder`, found by `inside`. Throws EngineFailure. */
    public fun load(name: String, component: Component, folder: Path): LoadedComponent
}
