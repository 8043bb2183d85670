package org.ondeviceprofiler.core

/** What is written as a JSON object. */
public interface Writable {
    /** Return the object with every member, defaults too. */
    public fun toJson(): JsonObject
}
