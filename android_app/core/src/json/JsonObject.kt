package org.ondeviceprofiler.core

/** An object in the order its keys came. */
public data class JsonObject(public val members: Map<String, Json>) : Json {
    /** Return a member, or null where there is none. */
    public operator fun get(name: String): Json? = members[name]
}
