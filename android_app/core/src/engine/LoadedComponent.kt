package org.ondeviceprofiler.core

/** A component that is ready; to close it gives its memory back. */
public interface LoadedComponent : AutoCloseable {
    /** Its functions by name. */
    public val functions: Map<String, GraphCall>

    override fun close()
}
