package org.ondeviceprofiler.core

/** One graph that is ready to run. */
public fun interface GraphCall {
    /** Take input ports by name, return the outputs in the order the manifest lists them. Throws EngineFailure. */
    public fun call(feeds: Map<String, Tensor>): List<Tensor>
}
